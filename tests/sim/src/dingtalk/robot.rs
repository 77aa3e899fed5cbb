//! Ordinary messages of the robot, and their recall.

use super::{
    error::{Answer, Refusal},
    server::Ask,
    world::{Body, Standing, World},
};
use serde_json::{Map, Value, json};

/// Maximum size of `msgParam`, in bytes.
const MAX_PARAM_BYTES: usize = 20_000;
/// Maximum number of recipients of one call.
const PEOPLE: usize = 20;

/// Answers `oToMessages/batchSend`.
pub(crate) fn single(world: &mut World, ask: &Ask) -> Answer {
    world.scope("qyapi_robot_sendmsg")?;
    robot(world, ask)?;
    let users: Vec<String> = texts(ask, "userIds");
    if users.is_empty() || users.len() > PEOPLE {
        return Err(Refusal::invalid("userIds", "between 1 and 20 users"));
    }
    body(world, ask)?;
    let (mut invalid, mut flooded, mut filtered) = (Vec::new(), Vec::new(), Vec::new());
    let key = key(world);
    for user in users {
        let person = world.people.iter_mut().find(|person| person.staff.as_ref() == Some(&user));
        match person.map(|person| &mut person.standing) {
            Some(Standing::Flooded(left)) if *left > 0 => {
                *left -= 1;
                flooded.push(user);
            }
            Some(Standing::Fine | Standing::Flooded(_)) => {
                let shown = body(world, ask)?;
                world.show(&user, &key, shown, false)?;
            }
            Some(Standing::Filtered) => filtered.push(user),
            Some(Standing::Invalid) | None => invalid.push(user),
        }
    }
    Ok(json!({
        "processQueryKey": key, "invalidStaffIdList": invalid,
        "flowControlledStaffIdList": flooded, "filteredStaffIdList": filtered,
    }))
}

/// Answers `groupMessages/send`.
pub(crate) fn group(world: &mut World, ask: &Ask) -> Answer {
    world.scope("qyapi_robot_sendmsg")?;
    robot(world, ask)?;
    let chat = ask.must("openConversationId")?;
    if !world.chats.get(chat).is_some_and(|chat| chat.group) {
        return Err(Refusal::invalid("openConversationId", "the robot is not in this conversation"));
    }
    let shown = body(world, ask)?;
    let key = key(world);
    world.show(chat, &key, shown, false)?;
    Ok(json!({"processQueryKey": key}))
}

/// Answers both calls that recall messages.
pub(crate) fn recall(world: &mut World, ask: &Ask) -> Answer {
    robot(world, ask)?;
    let (mut done, mut failed) = (Vec::new(), Map::new());
    for key in texts(ask, "processQueryKeys") {
        let mut posts = world.chats.values_mut().flat_map(|chat| &mut chat.posts);
        match posts.find(|post| post.id == key) {
            Some(post) => {
                post.recalled = true;
                done.push(key);
            }
            None => {
                failed.insert(key, "the key is not known".into());
            }
        }
    }
    Ok(json!({"successResult": done, "failedResult": failed}))
}

fn robot(world: &World, ask: &Ask) -> Answer<()> {
    if ask.must("robotCode")? == world.options.client_id {
        return Ok(());
    }
    Err(Refusal::invalid("robotCode", "the robot is not there"))
}

fn key(world: &mut World) -> String {
    format!("pqk{:016x}{}", world.random.u64(..), world.fresh())
}

fn texts(ask: &Ask, name: &str) -> Vec<String> {
    let all = ask.body.get(name).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

/// Returns the visible content of `msgKey` and `msgParam`.
fn body(world: &World, ask: &Ask) -> Answer<Body> {
    let param = ask.must("msgParam")?;
    let wrong = |text: &str| Refusal::invalid("msgParam", text);
    if param.len() > MAX_PARAM_BYTES {
        return Err(wrong("the content is too long"));
    }
    let param: Map<String, Value> = serde_json::from_str(param).map_err(|_| wrong("no JSON in a string"))?;
    let field = |name: &str| match param.get(name).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err(wrong(&format!("{name} is empty"))),
    };
    match ask.must("msgKey")? {
        "sampleText" => Ok(Body::Text(field("content")?)),
        "sampleMarkdown" => {
            field("title")?;
            Ok(Body::Markdown(field("text")?))
        }
        "sampleImageMsg" => {
            let url = field("photoURL")?;
            file(world, &url, "image").ok_or_else(|| wrong("the picture is not there"))
        }
        "sampleFile" => {
            let (id, name, _) = (field("mediaId")?, field("fileName")?, field("fileType")?);
            file(world, &id, &name).ok_or_else(|| wrong("the media is not there"))
        }
        other => Err(Refusal::invalid("msgKey", &format!("{other} is not known"))),
    }
}

fn file(world: &World, id: &str, name: &str) -> Option<Body> {
    let (own, bytes) = world.files.get(id)?;
    let name = if name == "image" { own } else { name };
    Some(Body::File(name.to_owned(), bytes.clone()))
}
