//! Uploads and artifacts over HTTP, as programs and browsers use them.

use crate::{
    documents::{archive, docx},
    house::{House, http},
};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

const THREAD: &str = "7d1f6c9e-0000-4000-8000-000000000001";

fn uploads(house: &House, more: &str) -> String {
    format!("http://{}/api/threads/{THREAD}/uploads{more}", house.address)
}

fn form(files: &[(&str, &[u8])]) -> Form {
    files.iter().fold(Form::new(), |form, (name, bytes)| {
        form.part("files", Part::bytes(bytes.to_vec()).file_name((*name).to_owned()))
    })
}

async fn put(house: &House, form: Form) -> (u16, Value) {
    let answer = http().post(uploads(house, "")).multipart(form).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn names(house: &House) -> Vec<String> {
    let listed: Value = serde_json::from_str(
        &http().get(uploads(house, "/list")).send().await.unwrap().text().await.unwrap(),
    )
    .unwrap();
    let files = listed["files"].as_array().unwrap();
    assert_eq!(listed["count"], files.len());
    files.iter().map(|file| file["filename"].as_str().unwrap().to_owned()).collect()
}

/// The folder of the thread on this machine.
fn folder(house: &House) -> std::path::PathBuf {
    house.path(format!(".pudu/users/default/threads/{THREAD}/user-data"))
}

/// Requests an artifact; the path is sent unchanged.
async fn get(
    house: &House,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, reqwest::header::HeaderMap, Vec<u8>) {
    let mut call = http().get(format!("http://{}/api/threads/{THREAD}/artifacts/{path}", house.address));
    for (name, value) in headers {
        call = call.header(*name, *value);
    }
    let answer = call.send().await.unwrap();
    (answer.status().as_u16(), answer.headers().clone(), answer.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn files_are_put_listed_fetched_and_removed() {
    let house = House::open("").await;
    let document = docx(&["One"]);
    let (status, put) =
        put(&house, form(&[("../my plan.docx", &document), ("a.txt", b"one"), ("a.txt", b"two")])).await;
    let base = format!("/api/threads/{THREAD}/artifacts/mnt/user-data/uploads");
    let expect = json!({
        "success": true, "message": "Successfully uploaded 3 file(s)", "skipped_files": [],
        "files": [
            {
                "filename": "my plan.docx", "size": document.len(), "extension": ".docx",
                "original_filename": "../my plan.docx",
                "path": "/mnt/user-data/uploads/my plan.docx",
                "virtual_path": "/mnt/user-data/uploads/my plan.docx",
                "artifact_url": format!("{base}/my%20plan.docx"),
                "markdown_file": "my plan.md",
                "markdown_path": "/mnt/user-data/uploads/my plan.md",
                "markdown_virtual_path": "/mnt/user-data/uploads/my plan.md",
                "markdown_artifact_url": format!("{base}/my%20plan.md"),
            },
            {
                "filename": "a.txt", "size": 3, "extension": ".txt", "path": "/mnt/user-data/uploads/a.txt",
                "virtual_path": "/mnt/user-data/uploads/a.txt", "artifact_url": format!("{base}/a.txt"),
            },
            {
                "filename": "a_1.txt", "size": 3, "extension": ".txt", "path": "/mnt/user-data/uploads/a_1.txt",
                "original_filename": "a.txt",
                "virtual_path": "/mnt/user-data/uploads/a_1.txt", "artifact_url": format!("{base}/a_1.txt"),
            },
        ],
    });
    assert_eq!((status, put), (200, expect));
    assert_eq!(names(&house).await, ["a.txt", "a_1.txt", "my plan.docx", "my plan.md"]);
    let (status, headers, text) = get(&house, "mnt/user-data/uploads/my%20plan.md", &[]).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, "text/markdown; charset=utf-8"));
    assert!(String::from_utf8(text).unwrap().contains("# One"));
    let remove = async |name: &str| {
        let answer = http().delete(uploads(&house, &format!("/{name}"))).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let gone = json!({"success": true, "message": "Deleted my plan.docx"});
    assert_eq!(remove("my%20plan.docx").await, (200, gone));
    assert_eq!(names(&house).await, ["a.txt", "a_1.txt"], "its text goes with it");
    assert_eq!(remove("my%20plan.docx").await.0, 404);
    assert_eq!(remove("..%2Foutputs%2Fx").await.0, 400);
}

#[tokio::test]
async fn too_much_is_refused_and_nothing_of_it_is_kept() {
    let rest = "uploads: {max_files: 2, max_file_size: 1000, max_total_size: 1500}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let limits = http().get(uploads(&house, "/limits")).send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(limits, json!({"max_files": 2, "max_file_size": 1000, "max_total_size": 1500}));
    let (small, half, big) = (vec![1; 10], vec![2; 900], vec![3; 1001]);
    for (files, status, told) in [
        (vec![("a", &*small), ("b", &small), ("c", &small)], 413, "Too many files: 2 may come at once"),
        (vec![("a", &*small), ("b", &big)], 413, "File too large: b has more than 1000 B (1000 bytes)"),
        (
            vec![("a", &*half), ("b", &half)],
            413,
            "Total upload size too large: 1.5 KiB (1500 bytes) may come at once",
        ),
        (vec![], 400, "incomplete multipart stream"),
        (vec![("", &*small)], 400, "No files provided"),
    ] {
        let (answered, detail) = put(&house, form(&files)).await;
        assert_eq!((answered, &detail["detail"]), (status, &json!(told)));
    }
    let cut = http().post(uploads(&house, "")).header("content-type", "multipart/form-data; boundary=x");
    let cut = cut.body("--x\r\ncontent-disposition: form-data; name=\"files\"; filename=\"a\"\r\n\r\nhalf");
    assert_eq!(cut.send().await.unwrap().status(), 400);
    assert_eq!(http().post(uploads(&house, "")).body("x").send().await.unwrap().status(), 415);
    assert_eq!(names(&house).await, [] as [&str; 0]);
    assert_eq!(std::fs::read_dir(house.path(".pudu/tmp")).unwrap().count(), 0, "no part is left");
    let other = format!("http://{}/api/threads/a%20b/uploads/list", house.address);
    assert_eq!(http().get(other).send().await.unwrap().status(), 422);
}

#[tokio::test]
async fn an_artifact_comes_whole_in_part_or_not_at_all_if_it_is_known() {
    let house = House::open("").await;
    put(&house, form(&[("a.bin", b"0123456789")])).await;
    let path = "mnt/user-data/uploads/a.bin";
    let (status, headers, bytes) = get(&house, path, &[]).await;
    assert_eq!((status, bytes.as_slice()), (200, &b"0123456789"[..]));
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(text("content-disposition"), "inline; filename*=UTF-8''a.bin");
    assert_eq!((text("x-content-type-options"), text("accept-ranges")), ("nosniff".into(), "bytes".into()));
    assert!(text("content-security-policy").starts_with("sandbox"));
    let (tag, date) = (text("etag"), text("last-modified"));
    let (status, headers, bytes) = get(&house, path, &[("range", "bytes=2-4")]).await;
    assert_eq!((status, bytes.as_slice()), (206, &b"234"[..]));
    assert_eq!(headers["content-range"], "bytes 2-4/10");
    assert_eq!(headers["content-length"], "3");
    let (status, headers, _) = get(&house, path, &[("range", "bytes=10-")]).await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (416, "bytes */10"));
    assert_eq!(get(&house, path, &[("if-none-match", &tag)]).await.0, 304);
    assert_eq!(get(&house, path, &[("if-modified-since", &date)]).await.0, 304);
    assert_eq!(get(&house, path, &[("range", "bytes=2-4"), ("if-range", "\"old\"")]).await.0, 200);
    let (_, headers, _) = get(&house, &format!("{path}?download=true"), &[]).await;
    assert_eq!(headers["content-disposition"], "attachment; filename*=UTF-8''a.bin");
    let head = http().head(format!("http://{}/api/threads/{THREAD}/artifacts/{path}", house.address));
    assert_eq!(head.send().await.unwrap().headers()["content-length"], "10");
}

#[tokio::test]
async fn what_a_browser_would_run_and_what_is_elsewhere_is_not_shown() {
    let house = House::open("").await;
    put(&house, form(&[("a.txt", b"x")])).await;
    let (outputs, secret) = (folder(&house).join("outputs"), house.path(".pudu/gateway-token"));
    std::fs::write(outputs.join("page.html"), "<script>alert(1)</script>").unwrap();
    std::fs::write(outputs.join("picture.svg"), "<svg onload='alert(1)'/>").unwrap();
    std::os::unix::fs::symlink(secret, outputs.join("link")).unwrap();
    std::os::unix::fs::symlink("../uploads", outputs.join("folder")).unwrap();
    std::fs::write(folder(&house).join("workspace/notes"), "x").unwrap();
    for name in ["page.html", "picture.svg"] {
        let (status, headers, _) = get(&house, &format!("mnt/user-data/outputs/{name}"), &[]).await;
        let attached = headers["content-disposition"].to_str().unwrap().starts_with("attachment");
        assert!(status == 200 && attached, "{name}: {headers:?}");
    }
    for (path, status) in [
        ("mnt/user-data/outputs/none", 404),
        ("mnt/user-data/outputs/link", 400),
        ("mnt/user-data/outputs/folder/a.txt", 400),
        ("mnt/user-data/outputs/folder", 400),
        ("mnt/user-data/outputs/..%2Fworkspace%2Fnotes", 403),
        ("mnt/user-data/outputs/%2e%2e/%2e%2e/x", 403),
        ("mnt/user-data/outputs/a%00b", 403),
        ("mnt/user-data/workspace/notes", 403),
        ("mnt/user-data/outputs", 403),
        ("etc/passwd", 400),
        ("%2Fetc/passwd", 400),
    ] {
        let (answered, _, body) = get(&house, path, &[]).await;
        // A client may normalize the path before sending it: then it is a different path.
        let fits = answered == status || (path.contains("%2e") && answered == 400);
        assert!(fits, "{path}: {answered} {}", String::from_utf8_lossy(&body));
    }
}

#[tokio::test]
async fn files_in_a_skill_archive_are_shown() {
    let house = House::open("").await;
    put(&house, form(&[("a.txt", b"x")])).await;
    let large = vec![b' '; 17 * 1024 * 1024];
    let skill = archive(&[("s/SKILL.md", b"# Skill".to_vec()), ("s/big.txt", large)]);
    std::fs::write(folder(&house).join("outputs/s.skill"), skill).unwrap();
    let at = |inner: &str| format!("mnt/user-data/outputs/s.skill/{inner}");
    let (status, headers, bytes) = get(&house, &at("s/SKILL.md"), &[]).await;
    assert_eq!((status, bytes.as_slice()), (200, &b"# Skill"[..]));
    assert_eq!(headers["cache-control"], "private, max-age=300");
    assert_eq!(get(&house, &at("s/none.md"), &[]).await.0, 404);
    assert_eq!(get(&house, &at("s/big.txt"), &[]).await.0, 404);
    assert_eq!(get(&house, &at("s"), &[]).await.0, 404);
}

#[tokio::test]
async fn they_are_for_whoever_has_the_token() {
    let mut house = House::furnish(Default::default(), "", "gateway:\n  token: open-sesame-123\n").await;
    house.start();
    assert_eq!(get(&house, "mnt/user-data/outputs/x", &[]).await.0, 401);
    let known = [("authorization", "Bearer open-sesame-123")];
    assert_eq!(get(&house, "mnt/user-data/outputs/x", &known).await.0, 404);
    let evil = http().post(uploads(&house, "")).header("origin", "https://evil.example");
    assert_eq!(evil.multipart(form(&[("a", b"x")])).send().await.unwrap().status(), 403);
}
