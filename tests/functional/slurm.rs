//! `--runner "srun --gres=gpu:1"` on a real Slurm of one machine, which each test starts and stops.
//! Its two GPUs are device files that every machine has. Slurm really assigns them, but no process
//! opens them. The tests run on the CPU.
//!
//! The tests are skipped, with the reason, if Slurm is not installed, or if the user is not root,
//! because its daemons need root here.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{Programs, Run, is_running};

const SRUN: &str = "srun --gres=gpu:1";

/// A Slurm with this machine as its only node.
struct Slurm {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts Slurm, or returns the reason that it cannot.
    fn start() -> Result<Self, String> {
        for program in ["munged", "slurmctld", "slurmd", "srun", "squeue"] {
            let found = Command::new(program).arg("--version").stdin(Stdio::null()).output();
            found.map_err(|error| {
                format!("{program}: {error} (apt-get install slurmctld slurmd slurm-client munge)")
            })?;
        }
        let id = Command::new("id").arg("-u").output().map_err(|error| error.to_string())?;
        if id.stdout != b"0\n" {
            return Err("the user is not root".to_owned());
        }
        let mut slurm =
            Self { folder: tempfile::tempdir().expect("a temporary folder"), daemons: Vec::new() };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
        slurm.configure(host.trim());
        let folder = slurm.folder.path().to_owned();
        let option = |name: &str, file: &str| format!("--{name}={}", folder.join(file).display());
        let munged = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            option("key-file", "key"),
            option("socket", "munge.sock"),
            option("pid-file", "munge.pid"),
            option("log-file", "munge.log"),
            option("seed-file", "munge.seed"),
        ];
        slurm.daemon("munged", &munged);
        slurm.wait_for("munged creates its socket", || folder.join("munge.sock").exists());
        let configuration = slurm.configuration().display().to_string();
        for program in ["slurmctld", "slurmd"] {
            let arguments = ["-D".to_owned(), "-f".to_owned(), configuration.clone()];
            slurm.daemon(program, &arguments);
        }
        slurm
            .wait_for("the node is idle", || slurm.query("sinfo", &["-h", "-o", "%T"]) == "idle\n");
        Ok(slurm)
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    fn configure(&self, host: &str) {
        let folder = self.folder.path();
        for name in ["state", "spool"] {
            std::fs::create_dir(folder.join(name)).expect("a folder");
        }
        // Any 1,024 bytes are a key.
        std::fs::write(folder.join("key"), [7_u8; 1024]).expect("a key");
        let owner_only = PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(folder.join("key"), owner_only).expect("a secret key");
        let gpus = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n";
        std::fs::write(folder.join("gres.conf"), gpus).expect("a configuration");
        let [controller, node] = unused_ports();
        let text = CONFIGURATION
            .replace("HOST", host)
            .replace("CONTROLLER", &controller.to_string())
            .replace("NODE", &node.to_string())
            .replace("FOLDER", &folder.display().to_string());
        std::fs::write(self.configuration(), text).expect("a configuration");
    }

    fn daemon(&mut self, program: &str, arguments: &[String]) {
        let log = || std::fs::File::create(self.folder.path().join(format!("{program}.out")));
        let daemon = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log().expect("a log"))
            .stderr(log().expect("a log"))
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        self.daemons.push(daemon);
    }

    #[track_caller]
    fn wait_for(&self, event: &str, has_happened: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !has_happened() {
            assert!(Instant::now() < deadline, "not within a minute: {event}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| {
            let text = std::fs::read_to_string(self.folder.path().join(name));
            format!("--- {name}\n{}", text.unwrap_or_default())
        };
        ["munged.out", "slurmctld.log", "slurmd.log"].map(read).concat()
    }

    fn query(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.configuration());
        let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn run(&self, programs: &Programs, arguments: &[&str]) -> Run {
        self.run_by(SRUN, programs, arguments)
    }

    fn run_by(&self, srun: &str, programs: &Programs, arguments: &[&str]) -> Run {
        let configuration = self.configuration().display().to_string();
        let arguments = [arguments, &["--runner", srun]].concat();
        programs.run_with("cpu", &arguments, &[("SLURM_CONF", &configuration)])
    }

    /// Asserts that no job is left.
    #[track_caller]
    fn assert_queue_is_empty(&self) {
        self.wait_for("the queue is empty", || self.query("squeue", &["-h"]).is_empty());
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The daemons end in reverse order of their start: the node, the controller, and munge,
        // which both need.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let deadline = Instant::now() + Duration::from_secs(20);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

const CONFIGURATION: &str = "\
ClusterName=memcheck
SlurmctldHost=HOST(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.sock
CredType=cred/munge
SlurmctldPort=CONTROLLER
SlurmdPort=NODE
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdLogFile=FOLDER/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
GresTypes=gpu
NodeName=HOST NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:2 State=UNKNOWN
PartitionName=test Nodes=HOST Default=YES MaxTime=INFINITE State=UP
";

fn unused_ports() -> [u16; 2] {
    let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
    // Both ports are held until both are known, so that they differ.
    let listeners = [listen(), listen()];
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

#[test]
#[ignore = "slow: just all"]
fn tests_run_as_jobs_with_a_gpu_each() {
    let slurm = match Slurm::start() {
        Ok(slurm) => slurm,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    let programs = Programs::of("runner");

    let run = slurm.run(&programs, &["runner::clean", "runner::leaky"]).exits(100);
    let leak = &run.test("leaky")["findings"][0];
    assert_eq!((&leak["code"], &leak["bytes_per_iteration"]), (&"leak".into(), &4096.into()));
    assert_eq!(run.test("clean")["status"], "passed");
    let direct = programs.run("cpu", &["runner::clean"]).exits(0);
    assert_eq!(run.exact_metrics("clean"), direct.exact_metrics("clean"));

    let died = slurm.run(&programs, &["runner::dies"]).exits(100);
    assert_eq!(died.codes("dies"), ["crashed"]);
    let message = died.test("dies")["findings"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("SIGABRT (signal 6)"), "{message}");

    let hung = slurm.run(&programs, &["runner::hangs"]).exits(100);
    assert_eq!(hung.codes("hangs"), ["timed-out"]);
    slurm.assert_queue_is_empty();
    assert!(!is_running(&programs.read("test")), "the test still runs");

    // Four tests at a time on two GPUs: two of them wait, and the wait must not count toward their
    // time-out.
    let run = slurm.run(&programs, &["runner::has_a_gpu", "--test-threads", "4"]).exits(0);
    assert_eq!(run.summary()["passed"], 4);
    let mut gpus: Vec<String> = (1..=4).map(|n| programs.read(&format!("gpu.{n}"))).collect();
    gpus.sort();
    assert_eq!(gpus, ["0", "0", "1", "1"]);

    // More GPUs than the machine has: nothing was measured, and the message of srun must be shown.
    let refused = slurm.run_by("srun --gres=gpu:9", &programs, &["runner::clean"]).exits(104);
    assert_eq!(refused.codes("clean"), ["not-measured"]);
    assert!(refused.stderr.contains("srun: error"), "{}", refused.stderr);
}
