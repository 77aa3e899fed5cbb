//! Import from DeerFlow, and the export and deletion of one user's data.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    model::At,
    telegram::{Kind, Options, Post},
};
use sqlx::{AnyConnection, Connection, Row};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A home written by DeerFlow's own libraries.
const DEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/deerflow/tests/home");
const ADA: &str = "0b9f4d3e-1111-4aaa-8bbb-000000000001";

/// A house with a DeerFlow project and no configuration.
async fn deer() -> House {
    let house = House::build("").await;
    fs::remove_file(house.path("config.yaml")).unwrap();
    copy(Path::new(DEER), &house.path("deer"));
    let data = house.path("deer/.deer-flow/data");
    let sql = fs::read_to_string(data.join("deerflow.sql")).unwrap();
    let mut file = open(&data.join("deerflow.db")).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    house
}

async fn open(file: &Path) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(&format!("sqlite://{}?mode=rwc", file.display())).await.unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Returns all files below a folder with their contents.
fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => files.push((
                    entry.path().strip_prefix(root).unwrap().to_owned(),
                    fs::read(entry.path()).unwrap(),
                )),
            }
        }
    }
    files.sort();
    files
}

/// Returns all files below a folder, without lines with their time of writing.
fn timeless(root: &Path) -> Vec<(PathBuf, String)> {
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.lines().filter(|line| !line.contains("lastUpdated")).collect::<Vec<_>>().join("\n")
    };
    tree(root).into_iter().map(|(path, bytes)| (path, text(bytes))).collect()
}

/// Returns everything that an import writes to the store, except for times.
async fn rows(house: &House) -> Vec<String> {
    let tables = [
        "SELECT 'thread ' || id || account || user_id || title || created || updated || seq || log_bytes FROM threads ORDER BY id",
        "SELECT 'log ' || thread || seq || body || run FROM log ORDER BY thread, seq",
        "SELECT 'note ' || kind || item || digest || seq || done FROM imports ORDER BY kind, item",
        "SELECT 'talk ' || key || account || chat || thread || updated FROM conversations ORDER BY key",
        "SELECT 'who ' || account || person || user_id || name FROM identities ORDER BY account, person",
        "SELECT 'user ' || id || email || system_role || token_version FROM users ORDER BY id",
        "SELECT 'said ' || id || thread || rating FROM feedback ORDER BY id",
        "SELECT 'fact ' || doc || text FROM recall_docs ORDER BY doc",
    ];
    let mut store = open(&house.path(".pudu/data/pudu.db")).await;
    let mut all = Vec::new();
    for sql in tables {
        let rows = sqlx::query(sql).fetch_all(&mut store).await.unwrap();
        all.extend(rows.iter().map(|row| row.get::<String, _>(0)));
    }
    all
}

#[tokio::test]
async fn one_command_moves_a_deerflow_home_in_and_the_daemon_goes_on_with_it() {
    let mut house = deer().await;
    let before = tree(&house.path("deer"));
    let (well, dry) = house.pudu(&["import", "deerflow", "deer", "--dry-run"]);
    assert!(well && dry.starts_with("Dry run; nothing was written."), "{dry}");
    assert!(!house.path(".pudu").exists() && !house.path("config.yaml").exists(), "nothing at all");
    let (well, told) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(well, "{told}");
    assert_eq!(dry.trim_start_matches("Dry run; nothing was written. An import would give:\n"), told);
    assert_eq!(tree(&house.path("deer")), before);
    let file =
        fs::read(house.path(format!(".pudu/users/{ADA}/threads/thread-ada/user-data/uploads/notes.txt")))
            .unwrap();
    assert_eq!(file, b"one\ntwo\nsix\n");
    let (well, threads) = house.pudu(&["storage", "threads"]);
    assert!(well && threads.contains("Lines of notes"), "{threads}");
    let audit = house.audit(&[]);
    assert!(audit.contains("import"), "{audit}");
    house.start();
    let (well, refused) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(!well && refused.contains("is already using") && refused.contains("Stop it first"), "{refused}");
}

#[tokio::test]
async fn all_data_is_in_one_home_after_an_import_or_the_report_names_what_is_not() {
    let house = deer().await;
    let config = fs::read_to_string(house.path("deer/config.yaml")).unwrap_or_default();
    let kept: String = config
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("database:") && !line.starts_with("skills:"))
        .collect();
    let places = "database:\n  backend: sqlite\n  sqlite_dir: .deer-flow/data\nskills:\n  path: ../skills\n";
    fs::write(house.path("deer/config.yaml"), format!("{kept}{places}")).unwrap();
    let (well, told) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(
        well && told
            .contains("without database.sqlite_dir and skills.path, because the data is in pudu's home"),
        "{told}"
    );
    assert!(house.path(".pudu/data/pudu.db").exists() && !house.path(".deer-flow").exists());
    let copy = fs::read_to_string(house.path("config.yaml")).unwrap();
    let comment = "  # skipped by pudu import: sqlite_dir: .deer-flow/data\n";
    assert!(
        copy.ends_with(&format!("sqlite\n{comment}skills:\n  # skipped by pudu import: path: ../skills\n")),
        "{copy}"
    );
    let (well, again) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(well && !again.contains("already exists; add missing keys by hand"), "{again}");

    fs::write(house.path("config.yaml"), format!("{kept}{places}")).unwrap();
    let (well, told) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(
        well && told.contains("database.sqlite_dir") && told.contains("is outside of the home"),
        "{told}"
    );
}

#[tokio::test]
async fn browsers_stay_signed_in_and_a_key_that_is_in_use_stays() {
    let house = deer().await;
    let (theirs, own) = (house.path("deer/.deer-flow/.jwt_secret"), house.path(".pudu/.jwt_secret"));
    let import = |key: &str| {
        fs::write(&theirs, key).unwrap();
        let (well, told) = house.pudu(&["import", "deerflow", "deer", "--json"]);
        assert!(well, "{told}");
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let items = told["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["item"] == ".jwt_secret").unwrap();
        item["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!((import("short").as_str(), own.exists()), ("left", false));
    let key = "a-key-of-deerflows-sessions-0123";
    assert_eq!(import(&format!("{key}\n")), "taken");
    assert_eq!(fs::read_to_string(&own).unwrap().trim(), key);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&own).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(import(key), "unchanged");
    assert_eq!(
        (import("another-key-of-deerflows-sessions").as_str(), fs::read_to_string(&own).unwrap().trim()),
        ("left", key)
    );
}

#[tokio::test]
async fn an_import_that_is_killed_anywhere_goes_on_where_it_was() {
    let whole = deer().await;
    assert!(whole.pudu(&["import", "deerflow", "deer"]).0);
    let (wanted, files) = (rows(&whole).await, timeless(&whole.path(".pudu/users")));
    let points = ["import.note", "import.thread", "import.records", "recall.index"];
    let points = points.iter().flat_map(|point| ["before", "after"].map(|side| format!("{point}.{side}")));
    let points = points.flat_map(|point| ["1", "2"].map(|nth| format!("{point}#{nth}")));
    for point in points.chain(["import.file#1".to_owned(), "import.file#7".to_owned()]) {
        let mut house = deer().await;
        house.set("PUDU_CRASH_AT", &point);
        let (well, _) = house.pudu(&["import", "deerflow", "deer"]);
        assert!(!well, "it did not die at {point}");
        house.set("PUDU_CRASH_AT", "");
        let (well, told) = house.pudu(&["import", "deerflow", "deer"]);
        assert!(well, "{point}: {told}");
        assert_eq!(rows(&house).await, wanted, "{point}");
        assert_eq!(timeless(&house.path(".pudu/users")), files, "{point}");
    }
}

#[tokio::test]
async fn a_folder_without_a_home_and_a_configuration_with_errors_are_refused() {
    let house = deer().await;
    let (well, told) = house.pudu(&["import", "deerflow", "nowhere"]);
    assert!(!well && told.contains("nowhere does not exist"), "{told}");
    fs::create_dir(house.path("empty")).unwrap();
    fs::write(house.path("empty/file"), "").unwrap();
    let (well, told) = house.pudu(&["import", "deerflow", "empty/file"]);
    assert!(!well && told.contains("file is not a folder"), "{told}");
    let (well, told) = house.pudu(&["import", "deerflow", "empty"]);
    assert!(!well && told.contains("is not a DeerFlow home"), "{told}");
    let extensions = house.path("deer/extensions_config.json");
    let whole = fs::read(&extensions).ok();
    fs::write(&extensions, "{\"mcpServers\": ").unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let (well, told) = house.pudu(&[&["import", "deerflow", "deer"], more].concat());
        assert!(
            !well && told.contains("nothing was imported") && told.contains("extensions_config"),
            "{told}"
        );
    }
    assert!(!house.path(".pudu/data").exists() && !house.path("config.yaml").exists());
    match whole {
        Some(whole) => fs::write(&extensions, whole).unwrap(),
        None => fs::remove_file(&extensions).unwrap(),
    }
    let agent = house.path("deer/.deer-flow/agents/lame");
    fs::create_dir_all(&agent).unwrap();
    fs::write(agent.join("config.yaml"), "tool_groups: [").unwrap();
    let (well, told) = house.pudu(&["import", "deerflow", "deer", "--dry-run"]);
    assert!(well && told.contains("lame: the agent does not answer until this is fixed"), "{told}");
    fs::write(house.path("deer/config.yaml"), "config_version: 34\nmodels: 7\n").unwrap();
    let (well, told) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(!well && told.contains("nothing was imported"), "{told}");
    assert!(!house.path(".pudu/data").exists() && !house.path("config.yaml").exists());
}

/// Words that only one user says.
const SECRETS: [&str; 5] = ["marmoset", "xylophone", "bassoon", "quagga", "Adalberta"];

/// A house in which Adalberta and Bob talk with the bot in private and in a group, both with memory.
async fn talked() -> (House, Talker, Talker) {
    let mut house = House::furnish(Options::default(), "", "memory: {debounce_seconds: 300}\n").await;
    house.start();
    let (ada, bob) = (Talker::new(&house, "Adalberta"), Talker::new(&house, "Bob"));
    ada.says("my pet is a marmoset", "echo: my pet is a marmoset").await;
    ada.say("/memory add I play the xylophone.");
    ada.reads_so(|text| text.starts_with("Remembered as")).await;
    bob.says("my pet is a hamster", "echo: my pet is a hamster").await;
    let group = house.telegram.add_group(Kind::Supergroup, "team", &[ada.person, bob.person]);
    bob.at(group).says("@pudu_bot what do you play?", "echo: [Bob] what do you play?").await;
    let answer = bob.at(group).answers()[0].id;
    house
        .telegram
        .post(group, ada.person, &Post::text("the bassoon, with my quagga").reply_to(answer))
        .unwrap();
    ada.at(group).reads("echo: [Adalberta] the bassoon, with my quagga").await;
    (house, ada, bob)
}

/// Returns the files in the home that contain one of the words.
fn found(house: &House, words: &[&str]) -> Vec<String> {
    let has = |bytes: &[u8], word: &str| {
        bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    let mut places = Vec::new();
    for (path, bytes) in tree(&house.path(".pudu")) {
        let inside = words.iter().filter(|word| has(&bytes, word) || path.to_string_lossy().contains(**word));
        places.extend(inside.map(|word| format!("{word} in {}", path.display())));
    }
    places
}

/// Unpacks an archive: its paths, and all its bytes.
fn unpacked(file: &Path) -> (Vec<String>, String) {
    let mut zip = zip::ZipArchive::new(fs::File::open(file).unwrap()).unwrap();
    let (mut places, mut all) = (Vec::new(), Vec::new());
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).unwrap();
        places.push(entry.name().unwrap().into_owned());
        std::io::Read::read_to_end(&mut entry, &mut all).unwrap();
    }
    (places, String::from_utf8_lossy(&all).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_gets_everything_and_is_then_forgotten_whether_a_daemon_runs_or_not() {
    for running in [true, false] {
        let (mut house, ada, bob) = talked().await;
        if !running {
            house.stop().await;
        }
        let who = format!("telegram:{}", ada.person);
        let (well, users) = house.pudu(&["users"]);
        assert!(well && users.contains(&who), "{users}");
        let line = users.lines().find(|line| line.contains(&who)).unwrap();
        let user = line.split_whitespace().next().unwrap().to_owned();
        let (well, told) = house.pudu(&["export", "--user", &who, "--out", "ada.zip"]);
        assert!(well, "{told}");
        let (places, all) = unpacked(&house.path("ada.zip"));
        for place in ["README.txt", "person.json", "tables/usage.json", "memory/__default__.json"] {
            assert!(places.iter().any(|one| one == place), "{places:?}");
        }
        for kind in ["threads/", "rooms/", "files/memory.json"] {
            assert!(places.iter().any(|one| one.starts_with(kind)), "{places:?}");
        }
        for word in &SECRETS[..4] {
            assert!(all.contains(word), "{word}");
        }
        assert!(!all.contains("hamster"), "nothing of others");
        let (well, told) = house.pudu(&["export", "--user", &who, "--out", "ada.zip"]);
        assert!(!well && told.contains("already exists"), "{told}");

        assert!(!found(&house, &SECRETS).is_empty());
        let (well, told) = house.pudu(&["forget", "--user", &who]);
        assert!(!well && told.contains("confirm with --yes"), "{told}");
        // A run may be at its end while its answer is shown already.
        let late = Instant::now() + SOON;
        let (well, told) = loop {
            let done = house.pudu(&["forget", "--user", &who, "--yes"]);
            if done.0 || Instant::now() > late {
                break done;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert!(well && told.contains("2 messages in groups"), "{told}");
        let audit = house.audit(&[]);
        assert!(audit.contains("export") && audit.contains("forget") && audit.contains("person "), "{audit}");
        if !running {
            house.start();
        }
        bob.says("and now?", "echo: and now?").await;
        assert_eq!(house.model.requests().last().unwrap().messages().len(), 4, "Bob's conversation goes on");
        ada.says("who am I?", "echo: who am I?").await;
        assert_eq!(house.model.requests().last().unwrap().messages().len(), 2, "hers begins anew");
        house.stop().await;
        assert_eq!(found(&house, &SECRETS[..4]), Vec::<String>::new(), "running: {running}");
        let audit = house.pudu(&["audit", "--json"]).1;
        assert!(!audit.contains(&user), "{audit}");
        assert!(!found(&house, &["hamster"]).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgetting_that_is_killed_anywhere_goes_on_where_it_was() {
    for point in [
        "thread.delete.before",
        "thread.files.after",
        "recall.forget_user.after",
        "person.forget.before",
        "person.forget.after",
    ] {
        let (mut house, ada, _) = talked().await;
        house.stop().await;
        let who = format!("telegram:{}", ada.person);
        house.set("PUDU_CRASH_AT", point);
        let (well, _) = house.pudu(&["forget", "--user", &who, "--yes"]);
        assert!(!well, "it did not die at {point}");
        house.set("PUDU_CRASH_AT", "");
        let (well, told) = house.pudu(&["forget", "--user", &who, "--yes"]);
        assert!(well || told.contains("nothing is stored about a user"), "{point}: {told}");
        assert_eq!(found(&house, &SECRETS), Vec::<String>::new(), "{point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_forgotten_while_the_agent_works_for_them() {
    let (house, ada, _) = talked().await;
    let mut hold = house.model.hold(1, At::End);
    ada.say("wait for me");
    hold.reached().await.unwrap();
    let who = format!("telegram:{}", ada.person);
    let (well, told) = house.pudu(&["forget", "--user", &who, "--yes"]);
    assert!(!well && told.contains("is working for this person"), "{told}");
    hold.proceed();
    ada.reads_so(|text| text.starts_with("echo: wait for me")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_daemon_that_died_left_open_keeps_nobody_from_being_forgotten() {
    let (mut house, ada, bob) = talked().await;
    let mut hold = house.model.hold(1, At::End);
    ada.say("wait for me with the quagga");
    hold.reached().await.unwrap();
    house.kill();
    let who = format!("telegram:{}", ada.person);
    let (well, told) = house.pudu(&["forget", "--user", &who, "--yes"]);
    assert!(well, "{told}");
    assert_eq!(found(&house, &SECRETS[..4]), Vec::<String>::new());
    drop(hold);
    house.start();
    bob.says("and now?", "echo: and now?").await;
    ada.says("who am I?", "echo: who am I?").await;
    assert_eq!(house.model.requests().last().unwrap().messages().len(), 2, "nothing is taken up again");
}

#[tokio::test]
async fn who_was_forgotten_is_not_brought_back_by_an_import() {
    let house = deer().await;
    assert!(house.pudu(&["import", "deerflow", "deer"]).0);
    let (well, told) = house.pudu(&["forget", "--user", "ada@example.org", "--yes"]);
    assert!(well && told.contains("2 threads"), "{told}");
    let left = rows(&house).await;
    let (well, told) = house.pudu(&["import", "deerflow", "deer"]);
    assert!(well && told.contains("forgotten with `pudu forget`"), "{told}");
    assert_eq!(rows(&house).await, left);
    assert!(!house.path(format!(".pudu/users/{ADA}")).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_was_before_they_joined_another_is_theirs_too() {
    let mut house = House::furnish(Options::default(), "", "memory: {debounce_seconds: 300}\n").await;
    house.start();
    let (ada, phone) = (Talker::new(&house, "Ada"), Talker::new(&house, "Phone"));
    phone.says("my pet is a marmoset", "echo: my pet is a marmoset").await;
    phone.say("/secret set QUAGGA_TOKEN 12345678901");
    phone.reads_so(|text| text.contains("QUAGGA_TOKEN")).await;
    ada.say("/connect");
    let code = crate::users::code(&ada.reads_so(|text| text.contains("within ten minutes: /connect ")).await);
    phone.say(&format!("/connect {code} yes"));
    phone.reads_so(|text| text.starts_with("Done: you are now Ada")).await;
    house.stop().await;
    let who = format!("telegram:{}", ada.person);
    let (well, told) = house.pudu(&["export", "--user", &who, "--out", "ada.zip"]);
    assert!(well, "{told}");
    let (places, all) = unpacked(&house.path("ada.zip"));
    assert!(all.contains("marmoset") && places.iter().any(|one| one.starts_with("threads/")), "{places:?}");
    let (well, told) = house.pudu(&["forget", "--user", &who, "--yes"]);
    assert!(well, "{told}");
    assert_eq!(found(&house, &["marmoset", "QUAGGA"]), Vec::<String>::new());
    let secrets = tree(&house.path(".pudu")).into_iter().filter(|(path, _)| path.ends_with("secrets.json"));
    assert_eq!(secrets.map(|(path, _)| path).collect::<Vec<_>>(), [] as [PathBuf; 0]);
}

/// Irregular files of a home: each is skipped with a reason, and none blocks the import or grows.
#[tokio::test]
async fn odd_files_of_a_home_are_left_by_name_and_holes_stay_holes() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let house = deer().await;
    let home = house.path("deer/.deer-flow");
    let fifo = |path: PathBuf| {
        fs::remove_file(&path).ok();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    fifo(home.join("users/odd/memory.json"));
    symlink("/dev/zero", home.join(".jwt_secret")).unwrap();
    let extensions = house.path("deer/extensions_config.json");
    fs::remove_file(&extensions).ok();
    fs::File::create(&extensions).unwrap().set_len(3 << 30).unwrap();
    let uploads = format!("users/{ADA}/threads/thread-ada/user-data/uploads/sparse.bin");
    let sparse = fs::File::create(home.join(&uploads)).unwrap();
    std::os::unix::fs::FileExt::write_at(&sparse, b"end", (256 << 20) - 3).unwrap();
    let reasons = |house: &House| {
        let (well, told) = house.pudu(&["import", "deerflow", "deer", "--json"]);
        assert!(well, "{told}");
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let items = told["items"].as_array().unwrap().clone();
        let of = |name: &str, user: Option<&str>| {
            let fits = |item: &&serde_json::Value| {
                item["item"] == name && user.is_none_or(|user| item["user"] == user)
            };
            items.iter().find(fits).map(|item| {
                format!(
                    "{}: {}",
                    item["outcome"].as_str().unwrap(),
                    item["note"].as_str().unwrap_or_default()
                )
            })
        };
        [of(".jwt_secret", None), of("extensions_config.json", None), of("memory", Some("odd"))]
    };
    let [key, servers, memory] = reasons(&house).map(|reason| reason.unwrap_or_default());
    assert_eq!(key, "left: symbolic link; users must sign in again");
    assert_eq!(servers, "left: too large");
    assert_eq!(memory, "left: not copied: memory.json: not a regular file");
    let copy = fs::metadata(house.path(".pudu").join(&uploads)).unwrap();
    assert_eq!(copy.len(), 256 << 20);
    assert!(copy.blocks() * 512 < 1 << 20, "{} bytes are taken", copy.blocks() * 512);
    fs::remove_file(home.join(".jwt_secret")).unwrap();
    fifo(home.join(".jwt_secret"));
    fs::remove_file(&extensions).unwrap();
    fifo(extensions);
    let [key, servers, _] = reasons(&house).map(|reason| reason.unwrap_or_default());
    assert_eq!(key, "left: not a regular file; users must sign in again");
    assert_eq!(servers, "left: not a regular file");
}
