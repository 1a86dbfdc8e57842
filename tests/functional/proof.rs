//! `doctor` proves that a machine is measured, and reports repeat it until something changes.

use serde_json::{Value, json};

use crate::fixture::{CLEAN_AND_FIXED, Project, own_directory, workspace};

/// The line of the stream about the proof, and the HTML report.
fn reported(project: &Project) -> (Option<Value>, String) {
    let html = project.path().join("report.html");
    let run = project.run(&["--report", &format!("html={}", html.display())]).exits(0);
    let proof = run.json().into_iter().find(|line| line["type"] == "proof");
    (proof, std::fs::read_to_string(&html).expect("the report"))
}

/// The proof comes from a file that `doctor` could have written, because `doctor` itself compiles
/// candle.
#[test]
#[ignore = "slow: just all"]
fn reports_repeat_a_proof_until_it_is_out_of_date() {
    let project = Project::new(CLEAN_AND_FIXED);
    let file = own_directory(&project).join("proof.json");
    let _ = std::fs::remove_file(&file);
    let (proof, page) = reported(&project);
    assert_eq!(proof, None);
    assert!(page.contains("<li data-proof=\"absent\">"), "{page}");
    assert!(page.contains("it was counted in 2 of 2 measured tests"), "{page}");

    let executable = project.path().join("planted");
    std::fs::write(&executable, "planted").expect("the file is written");
    let nothing = json!({});
    // The state of a file that does not exist.
    let state = |path: std::path::PathBuf| json!({path.display().to_string(): "Absent"});
    let absent = state(project.path().join("absent"));
    let write = |versions: &Value, executable: &Value| {
        let evidence = json!({
            "canary": ["host"],
            "leak": {"planted_bytes_per_iteration": 1 << 20, "found_bytes_per_iteration": 1 << 20},
            "exactness": {"runs": 5, "figures": 8},
        });
        let proof = json!({
            "time": "2026-11-23T06:00:00Z", "device": "cpu", "versions": versions,
            "evidence": evidence,
        });
        let identity = json!({
            "versions": versions, "command": nothing, "instrument": nothing,
            "executable": executable,
        });
        let stored = json!({"version": 1, "devices": {"cpu": {
            "proof": proof, "identity": identity,
        }}});
        std::fs::write(&file, stored.to_string()).expect("the proof is written");
    };
    let mut versions =
        json!({"memcheck": "9", "runtime": "9", "candle": "9", "rustc": "9", "profile": "dev"});
    write(&versions, &absent);
    let (proof, page) = reported(&project);
    let proof = proof.expect("a proof");
    assert_eq!((&proof["leg"], &proof["state"]), (&"cpu".into(), &"stale".into()), "{proof}");
    assert!(page.contains("<li data-proof=\"stale\">"), "{page}");
    // `candle was 9 and is 0.11.1`: the present versions, with which the proof is up to date.
    let changed = proof["changed"].as_array().expect("the reasons").clone();
    assert_eq!(changed.len(), 4, "{proof}");
    for (name, reason) in ["memcheck", "runtime", "candle", "rustc"].into_iter().zip(changed) {
        let (_, now) = reason.as_str().and_then(|it| it.split_once(" and is ")).expect("a version");
        versions[name] = now.into();
    }
    write(&versions, &absent);
    let (proof, page) = reported(&project);
    assert_eq!(proof.expect("a proof")["state"], "current");
    assert!(page.contains("<li data-proof=\"current\">"), "{page}");
    let looked = project.memcheck(&["doctor", "--no-run"]).exits(0);
    let line = "ok  proof: cpu: proven at 2026-11-23T06:00:00Z on cpu: the canary was seen in host";
    assert!(looked.stdout.contains(line), "{}", looked.stdout);

    // The executable with the planted leak is another one.
    write(&versions, &state(executable));
    let (proof, _) = reported(&project);
    let why = "the executable with the planted leak has changed";
    assert_eq!(proof.expect("a proof")["changed"], json!([why]));
    let looked = project.memcheck(&["doctor", "--no-run"]).exits(0);
    assert!(looked.stdout.contains("--  proof: cpu: the proof of "), "{}", looked.stdout);
}

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    #[test]
    #[ignore = "it compiles candle once more, which takes minutes"]
    fn doctor_proves_the_cpu_and_the_simulated_gpu() {
        let page = std::fs::read_to_string(workspace().join("docs/reference/command.md"));
        let page = page.expect("the page of the reference");
        let project = Project::new(CLEAN_AND_FIXED);
        for (device, space) in [("cpu", "host"), ("sim:h200", "cuda:0")] {
            let doctor = project.memcheck(&["doctor", "--device", device]).exits(0);
            for part in [
                format!("canary: {device}: the canary was seen in {space}"),
                " in every run".to_owned(),
                format!(
                    "planted leak: {device}: the planted leak of 1,048,576 B per iteration was"
                ),
                format!("exactness: {device}: "),
                " figures were identical in 5 runs".to_owned(),
            ] {
                assert!(doctor.stdout.contains(&part), "`{part}` is not in\n{}", doctor.stdout);
            }
            // The reference shows the lines of the simulated device.
            let (_, proof) = doctor.stdout.split_once("    ok  canary: ").expect("the canary");
            assert!(device == "cpu" || page.contains(proof), "{proof}");
        }
        let (proof, _) = reported(&project);
        assert_eq!(proof.expect("a proof")["state"], "current");
    }
}
