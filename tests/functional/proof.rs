//! `doctor` proves that a machine is measured, and reports repeat it until something changes.

use crate::fixture::{CLEAN_AND_FIXED, Project};

#[test]
fn doctor_stores_a_proof_that_reports_repeat_until_it_is_out_of_date() {
    let project = Project::new(CLEAN_AND_FIXED);
    let own = crate::fixture::own_directory(&project);
    let _ = std::fs::remove_file(own.join("proof.json"));
    let before = project.run(&[]).exits(0);
    assert!(before.json().iter().all(|line| line["type"] != "proof"));

    let doctor = project.memcheck(&["doctor", "--device", "cpu"]).exits(0);
    for part in [
        "canary: cpu: the canary was seen in host in every run",
        "planted leak: cpu: the planted leak of 1,048,576 B per iteration was found to the byte",
        "exactness: cpu: ",
        " figures were identical in 5 runs",
    ] {
        assert!(doctor.stdout.contains(part), "`{part}` is not in\n{}", doctor.stdout);
    }
    let html = project.path().join("report.html");
    let report = format!("html={}", html.display());
    let run = project.run(&["--report", &report]).exits(0);
    let proof = run.json().into_iter().find(|line| line["type"] == "proof").expect("a proof");
    assert_eq!((&proof["leg"], &proof["state"]), (&"cpu".into(), &"current".into()), "{proof}");
    assert_eq!(proof["evidence"]["leak"]["found_bytes_per_iteration"], 1 << 20);
    assert_eq!(proof["evidence"]["exactness"]["runs"], 5);
    let page = std::fs::read_to_string(&html).expect("the report");
    assert!(page.contains("<li data-proof=\"current\">"), "{page}");
    let looked = project.memcheck(&["doctor", "--no-run"]).exits(0);
    assert!(looked.stdout.contains("ok  proof: cpu: proven at "), "{}", looked.stdout);

    // The executable with the planted leak is another one.
    let file = own.join("proof.json");
    let stored = std::fs::read_to_string(&file).expect("the proof");
    let changed = stored.replacen("\"candle\":\"0.", "\"candle\":\"9.", 2);
    assert_ne!(changed, stored);
    std::fs::write(&file, changed).expect("the proof is written");
    let run = project.run(&["--report", &report]).exits(0);
    let proof = run.json().into_iter().find(|line| line["type"] == "proof").expect("a proof");
    assert_eq!(proof["state"], "stale", "{proof}");
    let why = proof["changed"][0].as_str().expect("a reason");
    assert!(why.starts_with("candle was 9."), "{why}");
    let page = std::fs::read_to_string(&html).expect("the report");
    assert!(page.contains("<li data-proof=\"stale\">"), "{page}");
    let looked = project.memcheck(&["doctor", "--no-run"]).exits(0);
    assert!(looked.stdout.contains("--  proof: cpu: the proof of "), "{}", looked.stdout);
}
