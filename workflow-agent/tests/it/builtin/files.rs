//! The tools for the files of a folder.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tempfile::TempDir;
use workflow_agent::builtin::{Files, FilesError};
use workflow_agent::tool::ToolSet as _;

use super::Tools;

/// A folder `root` for the tools, and beside it a folder `outside` with the file `f`.
struct World {
    folder: TempDir,
    tools: Tools,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/f"), "secret").unwrap();
        let tools = Tools::of(Files::new(folder.path().join("root")).unwrap());
        Self { folder, tools }
    }

    fn root(&self, path: &str) -> PathBuf {
        self.folder.path().join("root").join(path)
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    /// Nothing outside has changed.
    fn is_untouched(&self) -> bool {
        let names = fs::read_dir(self.outside()).unwrap().map(|entry| entry.unwrap().file_name());
        let beside = fs::read_dir(self.folder.path()).unwrap().count();
        names.eq(["f"]) && beside == 2 && fs::read(self.outside().join("f")).unwrap() == b"secret"
    }

    /// Neither reads, lists nor writes the path, and the errors show no secret.
    async fn refuses(&self, path: &str) {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("list_files", json!({ "path": path })),
            ("write_file", json!({ "path": path, "text": "changed" })),
            ("write_file", json!({ "path": path, "text": "changed", "append": true })),
        ] {
            let text = self.tools.failure(tool, arguments).await;
            assert!(!text.contains("secret"), "{tool} {path}: {text}");
        }
        assert!(self.is_untouched(), "{path}");
    }
}

/// A90
#[tokio::test]
async fn files_are_written_read_by_lines_appended_to_and_listed() {
    let world = World::new();
    let tools = &world.tools;
    let wrote =
        tools.text("write_file", json!({ "path": "a/b/notes.txt", "text": "one\ntwo\nthree\n" })).await;
    assert_eq!(wrote, "wrote 14 bytes");
    tools.text("write_file", json!({ "path": "a/b/notes.txt", "text": "four", "append": true })).await;
    tools.text("write_file", json!({ "path": "new.txt", "text": "begun", "append": true })).await;
    let read = |arguments| tools.text("read_file", arguments);
    assert_eq!(read(json!({ "path": "a/b/notes.txt" })).await, "one\ntwo\nthree\nfour");
    assert_eq!(
        read(json!({ "path": "a/./b/../b/notes.txt", "from_line": 2, "lines": 2 })).await,
        "two\nthree\n"
    );
    assert_eq!(read(json!({ "path": "a/b/notes.txt", "from_line": 4, "lines": 9 })).await, "four");
    assert_eq!(read(json!({ "path": "new.txt" })).await, "begun");
    let beyond = tools.failure("read_file", json!({ "path": "a/b/notes.txt", "from_line": 5 })).await;
    assert!(beyond.contains("has 4 lines, so line 5"), "{beyond}");

    symlink(world.outside(), world.root("way-out")).unwrap();
    assert_eq!(tools.text("list_files", json!({})).await, "a/\nnew.txt\nway-out@");
    let deep = tools.text("list_files", json!({ "depth": 9 })).await;
    assert_eq!(deep, "a/\na/b/\na/b/notes.txt\nnew.txt\nway-out@");
    assert_eq!(tools.text("list_files", json!({ "path": "a/b" })).await, "notes.txt");
}

/// A90
#[tokio::test]
async fn a_write_replaces_the_whole_file_keeps_its_mode_and_leaves_nothing_else() {
    let world = World::new();
    fs::write(world.root("run.sh"), "former and longer").unwrap();
    fs::set_permissions(world.root("run.sh"), fs::Permissions::from_mode(0o4750)).unwrap();
    world.tools.text("write_file", json!({ "path": "run.sh", "text": "new" })).await;
    assert_eq!(fs::read(world.root("run.sh")).unwrap(), b"new");
    let mode = fs::metadata(world.root("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750, "special bits do not survive");
    // A folder stands in the way: the write fails, and its temporary file is gone.
    fs::create_dir_all(world.root("folder/inner")).unwrap();
    world.tools.failure("write_file", json!({ "path": "folder", "text": "new" })).await;
    assert_eq!(world.tools.text("list_files", json!({})).await, "folder/\nrun.sh");
}

/// A90
#[tokio::test]
async fn paths_that_lead_outside_are_refused_in_every_spelling() {
    let world = World::new();
    fs::create_dir(world.root("sub")).unwrap();
    let absolute = world.outside().join("f").display().to_string();
    let inner = world.root("sub/../../outside/f").display().to_string();
    for path in [
        "../outside/f",
        "sub/../../outside/f",
        "./../outside/f",
        "sub/./.././../outside/f",
        "SUB/../../outside/f",
        "sub//..//..//outside//f",
        "../OUTSIDE/f",
        "../root/../outside/f",
        &absolute,
        &inner,
        &absolute.to_uppercase(),
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "..",
        "../",
        "sub/../..",
        "",
        "f\0",
    ] {
        world.refuses(path).await;
    }
    // Spellings of other systems are plain names here, and nothing else.
    for path in ["..\\outside\\f", "..%2foutside%2ff", "~/f", "C:\\f", "\u{ff0e}\u{ff0e}\u{ff0f}outside"] {
        world.tools.failure("read_file", json!({ "path": path })).await;
        world.tools.text("write_file", json!({ "path": path, "text": "inside" })).await;
        assert!(world.is_untouched(), "{path}");
    }
}

/// A90
#[tokio::test]
async fn links_that_lead_outside_are_refused() {
    let world = World::new();
    symlink(world.outside(), world.root("folder")).unwrap();
    symlink("../outside", world.root("relative")).unwrap();
    symlink("folder", world.root("second")).unwrap();
    symlink("/", world.root("top")).unwrap();
    symlink("loop", world.root("loop")).unwrap();
    for path in ["folder/f", "relative/f", "second/f", "top/etc/passwd", "loop", "loop/f", "folder/new/f"] {
        world.refuses(path).await;
    }
    symlink(world.outside().join("f"), world.root("file")).unwrap();
    symlink(world.outside().join("new"), world.root("dangling")).unwrap();
    symlink(world.root("inner"), world.root("absolute")).unwrap();
    for path in ["file", "dangling", "absolute"] {
        world.refuses(path).await;
    }
    for path in ["folder", "relative", "second", "top"] {
        world.refuses(path).await;
    }
}

/// A90
#[tokio::test]
async fn links_inside_can_be_read_and_are_never_written() {
    let world = World::new();
    fs::create_dir(world.root("real")).unwrap();
    fs::write(world.root("real/f"), "inside").unwrap();
    symlink("real", world.root("alias")).unwrap();
    symlink("real/f", world.root("file")).unwrap();
    assert_eq!(world.tools.text("read_file", json!({ "path": "alias/f" })).await, "inside");
    assert_eq!(world.tools.text("read_file", json!({ "path": "file" })).await, "inside");
    for append in [false, true] {
        let arguments = json!({ "path": "file", "text": "x", "append": append });
        let refused = world.tools.failure("write_file", arguments).await;
        assert!(refused.contains("symbolic link"), "{refused}");
    }
    world.tools.text("write_file", json!({ "path": "alias/g", "text": "new" })).await;
    assert_eq!(fs::read(world.root("real/g")).unwrap(), b"new");
}

/// A90
#[tokio::test]
async fn a_file_with_another_name_outside_is_never_changed() {
    let world = World::new();
    fs::hard_link(world.outside().join("f"), world.root("shared")).unwrap();
    let append = json!({ "path": "shared", "text": "changed", "append": true });
    let refused = world.tools.failure("write_file", append).await;
    assert!(refused.contains("one of several names"), "{refused}");
    world.tools.text("write_file", json!({ "path": "shared", "text": "changed" })).await;
    assert_eq!(fs::read(world.root("shared")).unwrap(), b"changed");
    assert!(world.is_untouched());
}

/// Exchanges folders and files of the root with links to outside, until it is dropped.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    fn begin(root: &Path, outside: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, root, outside) = (Arc::clone(&stop), root.to_owned(), outside.to_owned());
        let thread = std::thread::spawn(move || {
            let swap = |name: &str, target: &Path| {
                let (real, spare) = (root.join(name), root.join(format!("{name}-spare")));
                // Writes put files into the places that the renames leave, so any of these may fail.
                let _ = fs::rename(&real, &spare);
                let _ = symlink(target, &real);
                std::thread::yield_now();
                let _ = fs::remove_file(&real);
                let _ = fs::rename(&spare, &real);
            };
            while !stopped.load(Ordering::Relaxed) {
                swap("door", &outside);
                swap("file", &outside.join("f"));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A90
#[tokio::test]
async fn links_made_meanwhile_lead_nowhere() {
    let world = World::new();
    fs::create_dir(world.root("door")).unwrap();
    fs::write(world.root("door/f"), "inside").unwrap();
    fs::write(world.root("file"), "inside").unwrap();
    let swapping = Swapping::begin(&world.root(""), &world.outside());
    let mut successes = 0;
    for round in 0..1_500 {
        for path in ["door/f", "file"] {
            let read = world.tools.call("read_file", json!({ "path": path })).await;
            if let Ok(output) = read {
                assert!(!output.text.contains("secret"), "round {round} read outside");
                successes += 1;
            }
        }
        let path = ["door/f", "file", "door/new/deep", "door/g"][round % 4];
        let append = round % 8 < 4;
        let text = json!({ "path": path, "text": "inside", "append": append });
        let written = world.tools.call("write_file", text).await;
        successes += usize::from(written.is_ok());
        let listed = world.tools.call("list_files", json!({ "path": "door", "depth": 3 })).await;
        successes += usize::from(listed.is_ok());
        assert!(world.is_untouched(), "round {round} wrote outside");
    }
    drop(swapping);
    assert!(successes > 0, "the tools work between the exchanges");
}

/// A90
#[tokio::test]
async fn pipes_sockets_and_devices_are_refused_at_once() {
    let world = World::new();
    assert!(Command::new("mkfifo").arg(world.root("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(world.root("socket")).unwrap();
    for path in ["pipe", "socket"] {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "text": "x" })),
            ("write_file", json!({ "path": path, "text": "x", "append": true })),
        ] {
            let refused = world.tools.failure(tool, arguments).await;
            assert!(refused.contains("no regular file"), "{refused}");
        }
    }
    assert_eq!(world.tools.text("list_files", json!({})).await, "pipe|\nsocket|");
    let devices = Tools::of(Files::new("/dev").unwrap());
    let refused = devices.failure("read_file", json!({ "path": "zero" })).await;
    assert!(refused.contains("no regular file"), "{refused}");
}

/// A90, A16
#[tokio::test]
async fn a_huge_file_is_read_in_part_and_says_so() {
    const PART: usize = 8 * 1024 * 1024;
    let world = World::new();
    // The bound falls into a character.
    fs::write(world.root("text"), format!("x{}", "ä".repeat(PART / 2))).unwrap();
    let text = world.tools.text("read_file", json!({ "path": "text" })).await;
    let (part, note) = text.split_once('\n').unwrap();
    assert_eq!(part.len(), PART - 1);
    assert!(part.ends_with('ä'));
    assert_eq!(
        note,
        format!("[the file has {} bytes, of which only the first {PART} can be read]\n", PART + 1)
    );
    // A sparse file of a terabyte takes no longer.
    let sparse = fs::File::create(world.root("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let text = world.tools.text("read_file", json!({ "path": "sparse" })).await;
    assert!(text.len() < PART + 200 && text.contains("1099511627776 bytes"));
}

/// A90
#[tokio::test]
async fn bytes_that_are_no_text_are_replaced_with_a_warning() {
    let world = World::new();
    fs::write(world.root("latin"), b"Z\xfcrich").unwrap();
    let text = world.tools.text("read_file", json!({ "path": "latin" })).await;
    assert!(text.starts_with("Z\u{fffd}rich\n[bytes that are no UTF-8"), "{text}");
}

/// A90, A16
#[tokio::test]
async fn a_long_listing_has_the_first_thousand_entries_and_upper_levels_first() {
    let world = World::new();
    fs::create_dir(world.root("a")).unwrap();
    for number in 0..1_200 {
        fs::write(world.root(&format!("a/{number:04}")), "").unwrap();
    }
    fs::write(world.root("z"), "").unwrap();
    fs::write(world.root("line\nbreak"), "").unwrap();
    let text = world.tools.text("list_files", json!({ "depth": 2 })).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1_001);
    assert_eq!(lines[..2], ["a/", "a/0000"]);
    assert_eq!(
        lines[996..],
        ["a/0995", "a/0996", "line\\nbreak", "z", "[there are more entries; list an inner folder]"]
    );
}

/// A90
#[tokio::test]
async fn folders_and_files_are_not_confused() {
    let world = World::new();
    fs::create_dir(world.root("folder")).unwrap();
    fs::write(world.root("file"), "").unwrap();
    let read = world.tools.failure("read_file", json!({ "path": "folder" })).await;
    assert!(read.contains("is a folder"), "{read}");
    for path in ["folder", "folder/", "folder/.", ".", "file/inner", "new/"] {
        world.tools.failure("write_file", json!({ "path": path, "text": "x" })).await;
    }
    world.tools.failure("list_files", json!({ "path": "file" })).await;
    assert_eq!(world.tools.text("list_files", json!({ "path": "folder" })).await, "[the folder is empty]");
}

/// A90
#[test]
fn a_read_only_set_has_no_tool_that_acts_and_a_missing_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Files::new(folder.path()).unwrap().read_only().into_tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name().to_owned()).collect();
    assert_eq!(names, ["list_files", "read_file"]);
    assert!(tools.iter().all(|tool| tool.spec().is_read_only()));
    let missing = folder.path().join("missing");
    let FilesError::Root { path, .. } = Files::new(&missing).unwrap_err() else { panic!("another error") };
    assert_eq!(path, missing);
}
