//! Every link from a page to a page must point to an existing file and heading.

use std::path::{Path, PathBuf};

use crate::fixture::workspace;

/// The lines of a page outside code fences.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of a page's links, except for those to other sites.
pub(crate) fn links(page: &str) -> Vec<String> {
    // The lines are joined, because the text of a link can span two lines.
    let text = prose(page).map(without_code).collect::<Vec<_>>().join("\n");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|to| !to.contains("://")).collect()
}

/// The anchors of a page's headings, as GitHub generates them.
fn anchors(page: &str) -> Vec<String> {
    let titles = prose(page).filter_map(|line| {
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    let mut anchors: Vec<String> = Vec::new();
    for title in titles {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let anchor: String = title.to_lowercase().chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        let same = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    anchors
}

/// The broken links of the page at `path`.
fn broken(path: &Path, page: &str) -> Vec<String> {
    let exists = |link: &String| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match file {
            "" => path.to_owned(),
            file => path.with_file_name(file),
        };
        match std::fs::read_to_string(&target) {
            Ok(_) if anchor.is_empty() => true,
            Ok(text) => anchors(&text).iter().any(|known| known == anchor),
            Err(_) => anchor.is_empty() && target.exists(),
        }
    };
    let broken_links = links(page).into_iter().filter(|link| !exists(link));
    broken_links.map(|link| format!("{}: {link}", path.display())).collect()
}

/// The pages below a folder, except those that a build or npm has put there.
fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_ours = !["target", ".git", "node_modules"].iter().any(|other| name == *other);
        if is_folder && is_ours {
            pages(&path, into);
        } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
            into.push(path);
        }
    }
}

/// README.md and the pages of `docs`.
pub(crate) fn documents() -> Vec<PathBuf> {
    let mut documents = vec![workspace().join("README.md")];
    pages(&workspace().join("docs"), &mut documents);
    documents
}

#[test]
fn every_link_points_to_an_existing_file_and_heading() {
    let mut all = Vec::new();
    pages(&workspace(), &mut all);
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a page");
    let broken_links: Vec<String> = all.iter().flat_map(|path| broken(path, &read(path))).collect();
    assert!(broken_links.is_empty(), "{}", broken_links.join("\n"));
    let links: usize = all.iter().map(|path| links(&read(path)).len()).sum();
    assert!(links > 20, "{links} links in {} pages", all.len());
}

#[test]
fn every_page_of_the_reference_is_in_its_index() {
    let docs = workspace().join("docs");
    let index = std::fs::read_to_string(docs.join("reference.md")).expect("the index");
    let mut linked: Vec<PathBuf> = links(&index).iter().map(|link| docs.join(link)).collect();
    let mut existing = Vec::new();
    pages(&docs.join("reference"), &mut existing);
    linked.sort();
    existing.sort();
    assert_eq!(linked, existing);
}

/// The folder `book` contains symbolic links to the pages, so that links between them have the same
/// paths in the book as in the repository.
#[test]
fn every_page_of_the_documentation_is_in_the_book_and_its_links_stay_in_it() {
    let book = workspace().join("book");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).expect("the summary");
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| panic!("{}", path.display()));
    let chapters: Vec<PathBuf> = links(&summary).iter().map(|link| book.join(link)).collect();
    let linked: Vec<PathBuf> = chapters.iter().map(|chapter| real(chapter)).collect();
    for page in documents() {
        assert!(linked.contains(&real(&page)), "{} is not in the summary", page.display());
    }
    for chapter in &chapters {
        let page = std::fs::read_to_string(chapter).expect("a chapter");
        for link in links(&page) {
            let file = link.split('#').next().unwrap_or_default();
            let target = chapter.parent().expect("a folder").join(file);
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            let is_in_book = !is_page || linked.contains(&real(&target));
            assert!(is_in_book, "{}: {link} is not in the summary", chapter.display());
        }
    }
}

#[test]
fn a_broken_link_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "b.md",
        "# Other\n\n## A flag: `--x`\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n",
    );
    let page = "\
# One

[a](b.md) [b](b.md#a-flag---x) [c](#one) [d](b.md#twice-1) [e](https://example.org/x#y) [f
g](b.md#other) `[h](gone.md)`
[i](c.md) [j](b.md#no-heading) [k](#two) [l](b.md#twice-2)

```
[m](gone.md)
```
";
    let path = folder.path().join("a.md");
    std::fs::write(&path, page).unwrap();
    let broken_links: Vec<String> = ["c.md", "b.md#no-heading", "#two", "b.md#twice-2"]
        .map(|link| format!("{}: {link}", path.display()))
        .to_vec();
    assert_eq!(broken(&path, page), broken_links);
}
