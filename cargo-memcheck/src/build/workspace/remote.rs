//! The pages of a repository on the web, from the address of its remote `origin`.

use std::path::Path;

use super::git;

/// `https://github.com/owner/name` of the repository that has this folder.
pub(crate) fn web_address(folder: &Path) -> Option<String> {
    let url = git(folder, &["remote", "get-url", "origin"])?;
    of_remote(String::from_utf8(url).ok()?.trim())
}

/// The address of a line of the sources at a commit, with `{file}`, relative to this folder, and
/// `{line}`. `None` if the pages of the host are not known.
pub(crate) fn line_address(root: &Path, commit: &str) -> Option<String> {
    let prefix = String::from_utf8(git(root, &["rev-parse", "--show-prefix"])?).ok()?;
    of_lines(&web_address(root)?, commit, &escaped(prefix.trim_end_matches('\n')))
}

/// Each form that git accepts, without the name and the password of a user.
fn of_remote(url: &str) -> Option<String> {
    let (host, path) = match url.split_once("://") {
        Some(("https" | "http" | "ssh" | "git", rest)) => rest.split_once('/')?,
        Some(_) => return None,
        // `git@github.com:owner/name`; a path of this machine has a slash before its colon.
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    // The port of ssh is not that of the web.
    let host = match host.split_once(':') {
        Some((name, _)) if !url.starts_with("http") => name,
        _ => host,
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_plain = host.contains('.') && host.chars().all(is_host) && !path.is_empty();
    is_plain.then(|| format!("https://{host}/{}", escaped(path)))
}

fn of_lines(repository: &str, commit: &str, prefix: &str) -> Option<String> {
    let host = repository.strip_prefix("https://")?.split('/').next()?;
    let has = |name| host.contains(name);
    let (pages, line) = match () {
        () if has("github") => ("blob", "#L{line}"),
        () if has("gitlab") => ("-/blob", "#L{line}"),
        () if has("codeberg") || has("gitea") || has("forgejo") => ("src/commit", "#L{line}"),
        () if has("bitbucket.org") => ("src", "#lines-{line}"),
        () => return None,
    };
    Some(format!("{repository}/{pages}/{commit}/{prefix}{{file}}{line}"))
}

/// As a path of a URL.
pub(crate) fn escaped(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let letter = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_has_a_page_without_credentials() {
        for url in [
            "https://github.com/owner/name",
            "https://github.com/owner/name.git",
            "https://user:token@github.com/owner/name.git/",
            "git@github.com:owner/name.git",
            "ssh://git@github.com:22/owner/name.git",
        ] {
            let address = of_remote(url);
            assert_eq!(address.as_deref(), Some("https://github.com/owner/name"), "{url}");
        }
        assert_eq!(of_remote("https://host.org:8443/a b").unwrap(), "https://host.org:8443/a%20b");
        for url in
            ["/srv/name.git", "../name", "file:///srv/name", "C:/name", "", "host:", "x://a/b"]
        {
            assert_eq!(of_remote(url), None, "{url}");
        }
    }

    #[test]
    fn each_host_has_its_pages_and_an_unknown_one_has_none() {
        let line = |repository| of_lines(repository, "abc", "rust/");
        for (repository, expected) in [
            ("https://github.com/o/n", "https://github.com/o/n/blob/abc/rust/{file}#L{line}"),
            ("https://gitlab.org/o/n", "https://gitlab.org/o/n/-/blob/abc/rust/{file}#L{line}"),
            ("https://codeberg.org/o", "https://codeberg.org/o/src/commit/abc/rust/{file}#L{line}"),
            ("https://bitbucket.org/o", "https://bitbucket.org/o/src/abc/rust/{file}#lines-{line}"),
        ] {
            assert_eq!(line(repository).as_deref(), Some(expected));
        }
        assert_eq!(line("https://example.org/o/n"), None);
    }

    #[test]
    fn the_folder_of_a_workspace_in_a_repository_is_part_of_the_address() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(web_address(folder.path()), None);
        git(folder.path(), &["init", "--quiet"]).unwrap();
        assert_eq!((web_address(folder.path()), line_address(folder.path(), "abc")), (None, None));
        let remote = ["remote", "add", "origin", "git@github.com:o/n.git"];
        git(folder.path(), &remote).unwrap();
        let workspace = folder.path().join("a b");
        std::fs::create_dir(&workspace).unwrap();
        let expected = "https://github.com/o/n/blob/abc/a%20b/{file}#L{line}";
        assert_eq!(line_address(&workspace, "abc").as_deref(), Some(expected));
    }
}
