//! Compares the simulated device with the recordings. A recording that differs by one call or one
//! byte must be reported.

use std::path::Path;

use crate::fixture::{Run, memcheck_with, workspace};

fn replay(more: &[&str], variables: &[(&str, &str)]) -> Run {
    let arguments = ["run", "-p", "memcheck-tests", "--test", "fidelity", "--device", "sim"];
    let json = ["--message-format", "json", "--ci"];
    memcheck_with(&workspace(), &[&arguments[..], &json, more].concat(), variables)
}

fn recordings() -> std::path::PathBuf {
    workspace().join("tests/recordings/sim")
}

#[test]
fn every_recording_is_replayed_on_the_simulated_device() {
    let run = replay(&[], &[]).exits(0);
    let files = std::fs::read_dir(recordings()).expect("there are recordings");
    let recorded = files.filter(|file| {
        let name = file.as_ref().expect("an entry").file_name();
        Path::new(&name).extension().is_some_and(|extension| extension == "calls")
    });
    let recorded = recorded.count();
    assert!(recorded > 0);
    // One test for each recording, and no test without a recording.
    assert_eq!(run.summary()["passed"], recorded);
}

#[test]
fn a_difference_of_one_byte_or_one_call_from_a_recording_is_reported() {
    let recorded = std::fs::read_to_string(recordings().join("bert.calls")).expect("a recording");
    let last = recorded.lines().last().expect("a call");
    let sized = recorded.lines().find(|line| line.contains("Alloc")).expect("an allocation");
    let (call, bytes) = sized.rsplit_once(' ').expect("a call and its bytes");
    let larger = format!("{call} {}", bytes.parse::<u64>().expect("bytes") + 1);
    for (changed, expected) in [
        (recorded.replacen(sized, &larger, 1), format!("recorded `{larger}`, made `{sized}`")),
        (recorded.clone() + "cuMemAllocAsync 4\n", "made `nothing more`".to_owned()),
        (recorded.replace(&format!("{last}\n"), ""), "made `".to_owned()),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let card = folder.path().join("card");
        std::fs::create_dir(&card).expect("the folder is made");
        std::fs::write(card.join("bert.calls"), &changed).expect("the file is written");
        let folder = folder.path().display().to_string();
        let run = replay(&["--exact", "bert"], &[("FIDELITY_RECORDINGS", &folder)]).exits(100);
        let message = run.test("bert")["findings"][0]["message"].to_string();
        assert!(message.contains("sim differs from") && message.contains(&expected), "{message}");
    }
}
