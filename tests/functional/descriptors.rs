//! Bodies that close the descriptors of the process, and open files under their numbers.

use crate::fixture::Programs;

const FILES: [&str; 4] = ["by_number", "all", "restarts", "twice"];

#[test]
fn a_file_that_a_body_opens_under_a_number_of_memcheck_gets_only_what_the_body_writes() {
    let programs = Programs::of("descriptors");
    for device in ["cpu", "sim"] {
        for explain in ["never", "always"] {
            for file in FILES {
                let _ = std::fs::remove_file(programs.path().join(file));
            }
            let run = programs.run(device, &["--explain", explain]);
            for test in FILES {
                let line = run.test(test);
                assert_eq!(line["status"], "passed", "{device} {explain} {line}\n{}", run.stderr);
                let text = programs.read(test);
                assert!(text.lines().all(|line| line == "mine"), "{test}: {text}");
            }
            if explain == "never" {
                assert_eq!(run.codes("grows"), ["growth-limit"], "{device}\n{}", run.stderr);
            }
        }
    }
}
