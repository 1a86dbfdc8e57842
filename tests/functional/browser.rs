//! Drives the Chromium of this machine, for tests of pages. Commands and events are JSON of the
//! DevTools protocol over a pipe, so that the browser needs no network.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};

use crate::fixture::skip_reader;

const PATIENCE: Duration = Duration::from_secs(120);

/// The path of a Chromium; `None` if this machine has none.
fn executable() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// One page in a browser. The browser ends when this is dropped.
pub(crate) struct Page {
    browser: Child,
    commands: PipeWriter,
    messages: BufReader<PipeReader>,
    _profile: tempfile::TempDir,
    session: Option<String>,
    last: u64,
    /// Errors that scripts threw, and messages of the browser such as a blocked file.
    pub(crate) errors: Vec<String>,
}

impl Page {
    /// An empty page; `None` with a printed reason if this machine has no Chromium.
    pub(crate) fn open() -> Option<Self> {
        let Some(executable) = executable() else {
            skip_reader("this machine has no Chromium");
            return None;
        };
        let profile = tempfile::tempdir().expect("a folder for the browser");
        let (its_commands, commands) = std::io::pipe().expect("a pipe");
        let (messages, its_messages) = std::io::pipe().expect("a pipe");
        let mapping = |parent_fd, child_fd| FdMapping { parent_fd, child_fd };
        let browser = Command::new(executable)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-first-run"])
            // The sandbox needs rights that a container or root does not have.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .fd_mappings(vec![mapping(its_commands.into(), 3), mapping(its_messages.into(), 4)])
            .expect("distinct file descriptors")
            .spawn()
            .expect("the browser starts");
        let messages = BufReader::new(messages);
        let (session, errors) = (None, Vec::new());
        let mut page =
            Self { browser, commands, messages, _profile: profile, session, last: 0, errors };
        let target = page.send("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.send("Target.attachToTarget", attach);
        page.session = Some(attached["sessionId"].as_str().expect("a session").to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            page.send(&format!("{domain}.enable"), json!({}));
        }
        page.resize(1280, 900, 1);
        Some(page)
    }

    /// Sends a command and returns its result.
    fn send(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).expect("the browser listens");
        loop {
            let message = self.receive();
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn receive(&mut self) -> Value {
        let mut text = Vec::new();
        self.messages.read_until(0, &mut text).expect("a message");
        assert_eq!(text.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&text).expect("JSON")
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.errors.push(parameters["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") => self.errors.push(parameters["entry"]["text"].to_string()),
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                self.errors.push(parameters["args"].to_string());
            }
            _ => {}
        }
    }

    pub(crate) fn resize(&mut self, width: u32, height: u32, scale: u32) {
        let mobile = width < 500;
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile});
        self.send("Emulation.setDeviceMetricsOverride", screen);
    }

    pub(crate) fn set_dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.send("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    pub(crate) fn hide_scrollbars(&mut self) {
        self.send("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    }

    /// Shows the page as a printer gets it.
    pub(crate) fn set_print(&mut self, print: bool) {
        let media = if print { "print" } else { "" };
        self.send("Emulation.setEmulatedMedia", json!({"media": media}));
    }

    /// The number of sheets of paper that the page takes.
    pub(crate) fn sheets(&mut self) -> usize {
        let printed = self.send("Page.printToPDF", json!({"preferCSSPageSize": true}));
        let pdf = crate::report_data::base64(printed["data"].as_str().expect("a document"));
        let text = String::from_utf8_lossy(&pdf);
        text.matches("/Type /Page\n").count() + text.matches("/Type /Page ").count()
    }

    /// Opens a file and waits until `ready` is true in it.
    pub(crate) fn visit(&mut self, file: &Path, fragment: &str, ready: &str) {
        self.send("Page.navigate", json!({"url": "about:blank"}));
        let url = format!("file://{}{fragment}", file.display());
        self.send("Page.navigate", json!({"url": url}));
        self.wait(&format!("location.protocol === 'file:' && ({ready})"));
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.send("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// A text with plain spaces. The page has others between numbers and units.
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        let text = value.as_str().unwrap_or_else(|| panic!("{expression} is {value}"));
        text.replace('\u{a0}', " ")
    }

    /// Waits until an expression is true. It can throw while the page is loaded.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let start = Instant::now();
        let script = format!(
            "(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"
        );
        while self.value(&script) != true {
            assert!(start.elapsed() < PATIENCE, "never true: {expression}\n{:?}", self.errors);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The center of an element, which is scrolled into view; `x` and `y` are shares of its size.
    pub(crate) fn position(&mut self, selector: &str, x: f64, y: f64) -> (f64, f64) {
        let script = format!(
            "(() => {{ const e = document.querySelector({selector:?}); \
             e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); \
             return [b.left + b.width * {x}, b.top + b.height * {y}]; }})()"
        );
        let at = self.value(&script);
        (at[0].as_f64().expect("x"), at[1].as_f64().expect("y"))
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), pressed: bool) {
        let button = if kind == "mouseMoved" && !pressed { "none" } else { "left" };
        let buttons = u8::from(pressed);
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
        self.send("Input.dispatchMouseEvent", event);
    }

    pub(crate) fn hover(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
    }

    pub(crate) fn click(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
        self.mouse("mousePressed", at, true);
        self.mouse("mouseReleased", at, false);
    }

    pub(crate) fn click_on(&mut self, selector: &str) {
        let at = self.position(selector, 0.5, 0.5);
        self.click(at);
    }

    /// Turns the wheel at a place: a negative `by` is away from the user.
    pub(crate) fn wheel(&mut self, (x, y): (f64, f64), by: i32) {
        let event = json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by});
        self.send("Input.dispatchMouseEvent", event);
    }

    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from, false);
        self.mouse("mousePressed", from, true);
        self.mouse("mouseMoved", ((from.0 + to.0) / 2.0, to.1), true);
        self.mouse("mouseMoved", to, true);
        self.mouse("mouseReleased", to, false);
    }

    /// Types a text into the focused element.
    pub(crate) fn insert(&mut self, text: &str) {
        self.send("Input.insertText", json!({"text": text}));
    }

    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.send("Input.dispatchKeyEvent", json!({"type": kind, "key": key}));
        }
    }

    /// A picture of the visible part, in WebP.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let picture = self.send("Page.captureScreenshot", json!({"format": "webp", "quality": 80}));
        let text = picture["data"].as_str().expect("a picture");
        crate::report_data::base64(text)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
