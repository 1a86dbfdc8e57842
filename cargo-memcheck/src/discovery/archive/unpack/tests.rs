//! Tests of the interface of an extracted archive.

use std::fs;

use serde_json::json;

use super::super::format::PackedFile;
use super::super::write::{ArchiveEntry, EntrySource, write};
use super::*;
use crate::system::elf::ElfTarget;
use crate::system::error::CommandError;
use memcheck_core::wire::exit;

fn manifest(target: &str, kinds: &[&str], devices: &[&str]) -> Manifest {
    let table = |kind: &&str| format!("tests/{}.json", kind.to_lowercase());
    let build = |kind: &&str| json!({"kind": kind, "executables": [], "not_built": [], "nvml": null, "tests": table(kind)});
    let file = |kind: &&str| json!({"name": table(kind), "bytes": 0, "executable": false});
    let metadata = json!({
        "packages": [], "workspace_members": [], "resolve": null, "version": 1,
        "workspace_root": "/build/app", "target_directory": "/build/app/target",
    });
    let devices: Vec<Request> = devices.iter().map(|text| text.parse().unwrap()).collect();
    serde_json::from_value(json!({
        "target": target, "commit": "0123456789abcdef", "profile": "dev",
        "features": ["a", "b"], "devices": devices, "packages": [], "names_targets": false,
        "baselines": {}, "metadata": metadata.to_string(),
        "files": kinds.iter().map(file).collect::<Vec<_>>(),
        "builds": kinds.iter().map(build).collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn open(manifest: &Manifest, flags: &UnpackOptions) -> Result<Unpacked, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.zst");
    let entry = |file: &PackedFile| ArchiveEntry {
        name: PathBuf::from(&file.name),
        source: EntrySource::Text(String::new()),
    };
    let entries: Vec<ArchiveEntry> = manifest.files.iter().map(entry).collect();
    write(&path, "1", manifest, &entries, &Interrupt::default()).unwrap();
    Unpacked::open(&path, flags)
}

fn opened(kinds: &[&str], devices: &[&str]) -> Unpacked {
    let here = ElfTarget::here().unwrap().to_string();
    open(&manifest(&here, kinds, devices), &UnpackOptions::default()).unwrap()
}

#[test]
fn an_archive_for_another_kind_of_machine_is_refused() {
    let error = open(&manifest("s390x-linux", &[], &[]), &UnpackOptions::default()).unwrap_err();
    assert_eq!(error.exit_code(), exit::USAGE);
    let message = error.message();
    assert!(
        message.contains("s390x-linux")
            && message.contains(&ElfTarget::here().unwrap().to_string()),
        "{message}"
    );
}

#[test]
fn an_archive_is_described_and_extracted_to_the_named_folder() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("new/folder");
    let flags = UnpackOptions { extract_to: Some(to.clone()), ..UnpackOptions::default() };
    let here = ElfTarget::here().unwrap().to_string();
    let archive = open(&manifest(&here, &["Cpu", "Sim"], &["cpu"]), &flags).unwrap();
    assert_eq!(
        archive.described(),
        "built for cpu and sim, profile dev, features a,b, commit 0123456789ab"
    );
    let workspace = archive.workspace();
    assert_eq!(workspace.root(), to.canonicalize().unwrap().join("workspace"));
    assert_eq!(archive.compiled_in(), Path::new("/build/app"));
    drop(archive);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the folders did not exist before");
    fs::create_dir_all(&to).unwrap();
    drop(open(&manifest(&here, &["Cpu"], &["cpu"]), &flags).unwrap());
    assert!(to.is_dir() && fs::read_dir(&to).unwrap().next().is_none(), "for another try");
    let mut archive = open(&manifest(&here, &["Cpu"], &["cpu"]), &flags).unwrap();
    fs::write(to.join("extracted"), "").unwrap();
    archive.keep();
    drop(archive);
    assert!(to.join("extracted").is_file(), "it stays");
}

fn legs(archive: &Unpacked, requested: &[&str], gpu: bool) -> Result<Vec<String>, u8> {
    let by = if requested.is_empty() { DeviceSource::Configuration } else { DeviceSource::Flag };
    let requested = if requested.is_empty() { &["sim:a100-80g"] } else { requested };
    let requested = RequestedDevices {
        requests: requested.iter().map(|text| text.parse().unwrap()).collect(),
        by,
    };
    let (name, word) = ("H200".to_owned(), "0".to_owned());
    let h200 = RealGpu { index: 0, name, uuid: None, word, slice: false };
    let gpus = |_: &Launcher| if gpu { Ok(vec![h200]) } else { Err("no driver".to_owned()) };
    let legs = archive.legs(&requested, "t4", (&Launcher::None, Sharing::Together), gpus);
    legs.map(|legs| legs.iter().map(Leg::name).collect()).map_err(|error| error.exit_code())
}

#[test]
fn an_archive_runs_on_its_devices_unless_a_flag_names_others() {
    let both = opened(&["Cuda", "Cpu"], &["cuda", "cpu"]);
    assert_eq!(legs(&both, &[], true).unwrap(), ["cuda", "cpu"]);
    assert_eq!(legs(&both, &[], false), Err(exit::NO_DEVICE));
    assert_eq!(legs(&both, &["cpu"], false).unwrap(), ["cpu"]);
    assert_eq!(legs(&both, &["sim"], true), Err(exit::NO_DEVICE));
    assert_eq!(legs(&both, &["auto"], true).unwrap(), ["cuda"]);
    assert_eq!(legs(&both, &["auto"], false).unwrap(), ["cpu"]);
    let simulated = opened(&["Sim"], &["sim:h200"]);
    assert_eq!(legs(&simulated, &[], true).unwrap(), ["sim:h200"]);
    assert_eq!(legs(&simulated, &["auto"], true).unwrap(), ["sim:t4"]);
    assert_eq!(legs(&simulated, &["cuda"], true), Err(exit::NO_DEVICE));
    let error = simulated.not_for(&Request::Cpu);
    assert_eq!(error.to_string(), "--device cpu: the archive was built for sim:h200");
}

#[test]
fn an_executable_that_lost_its_tests_is_an_error() {
    let mut archive = opened(&["Cpu"], &["cpu"]);
    let executable = |id: &str, tests: Option<usize>| manifest::ArchivedExecutable {
        id: id.to_owned(),
        package: String::new(),
        file: String::new(),
        tests,
        environment: Vec::new(),
        out_dir: None,
    };
    archive.extracted.manifest.builds[0].executables =
        vec![executable("app", Some(2)), executable("app::unasked", None)];
    let carried = |id: &str| {
        let binary = Binary::new(id.to_owned(), 0, PathBuf::new(), Vec::new());
        let warning = Some("exit status: 127".to_owned());
        ListedExecutable { warning, ..ListedExecutable::with_tests(binary, Vec::new()) }
    };
    let unasked = archive.check(DeviceKind::Cpu, &[carried("app::unasked")]).unwrap_err();
    assert!(
        unasked.to_string().contains("could not be listed on the machine that built it"),
        "{unasked}"
    );
    let without = ListedExecutable { warning: None, ..carried("app::unasked") };
    assert!(archive.check(DeviceKind::Cpu, &[without]).is_ok());
    let error = archive.check(DeviceKind::Cpu, &[carried("app")]).unwrap_err();
    assert_eq!(error.exit_code(), exit::NOT_MEASURED);
    assert!(
        error.to_string().contains("but 2 on the machine that built it\nexit status: 127"),
        "{error}"
    );
}
