### All texts for people in chats, in English. Each has a function of its name in `Language`, with the arguments in
### alphabetical order. `zh-Hans.ftl` has the same texts with the same arguments; the build compares them.

## Punctuation between the parts of a text.

sentence_gap = { " " }
clause_gap = { ", " }
list_gap = { ", " }

## Menus and /help: what a command does, and what stands behind it.

about_agent = List agents, switch to one, or create one
about_bootstrap = Introduce yourself and shape my personality
about_compact = Summarize this conversation to make room
about_connect = Pair with a code, or link your account on another platform
about_goal = Set a goal that I work on until it is reached
about_help = Show this help
about_memory = Show and edit my memory of this chat
about_mode = Choose how I handle messages while I work
about_models = List models, or switch to one
about_new = Start a new conversation
about_retry = Ask the last question again
about_schedule = Show and change your scheduled tasks
about_secret = Store a secret for a skill; only that skill's commands can read it
about_skills = List skills; /name uses one
about_start = Say hello
about_status = Show the state of this conversation
about_stop = Stop the current work
about_think = Show or set the thinking level of the model
about_usage = Show token usage
argument_agent = [name|new name]
argument_code = [code]
argument_goal = [goal|clear]
argument_name = [name]
argument_schedule = [pause|resume|run|delete name]
argument_secret = [set NAME value|delete NAME]
argument_request = [request]
help_commands = Available commands:
help_skills = Skills (add your request after the name): { $names }
help_prompts = Prompts of MCP servers (add the arguments after the name): { $names }
help_talk = Send any other text to talk to the assistant.

## Commands in general.

command_only_in_chats = /{ $name } only works in chats.
command_takes_no_argument = /{ $name } takes no arguments. Send it without further text.
command_unknown = Unknown command: /{ $name }.
commands_available = Available commands: { $names }
described = : { $about }
did_you_mean = Did you mean `{ $name }`?
in_use = ← in use
more = and { $count } more
no_conversation = No active conversation.
not_stored = I could not save that. Try again in a moment.
with_title = { $name } ({ $title })

## /start, /connect and strangers.

goal_because = { $verdict }: { $reason }
goal_cleared = Goal cleared.
goal_exhausted = The goal is not reached yet, and I have used up my rounds. Send a message and I continue
goal_failed = The goal is not reached, and I cannot get past the obstacle
goal_long = A goal can have at most { $most } characters.
goal_needs_you = The goal is not reached yet, and I need your help
goal_none = No active goal. Set one with `/goal` followed by your goal, and I work until it is reached.
goal_not_set = There is no goal to clear.
goal_reached = Goal reached
goal_rounds = Rounds since your last message: { $used } of { $most }
goal_stalled = The goal is not reached, and I am not making progress
goal_status = Goal: { $objective }
goal_unproven = There is no evidence yet that the goal is reached
goal_waits = The goal is not reached yet: I am waiting for something to happen

hello =
    Hello, I am pudu. Send me a message to start a conversation.

    Type /help for available commands.
code_invalid = This code is invalid or has expired. Ask your admin for a new one.
code_unreadable = I could not check that code. Try again in a moment.
connect_privately = Please send that in a private chat: anyone who sees the code could use it.
connect_offer = To link your account on another platform, send me this there, in a private chat, within ten minutes: `/connect { $code }`. Both accounts then share one memory, one set of limits and one usage. `/connect off` unlinks them.
connect_confirm = This links you with { $name } on { $account }: one memory, one set of limits, one usage. Your memory here moves there, and stays there if you unlink later. Your own skills, secrets, conversations and files here do not move. Continue only if { $name } is you: press the button, or send `{ $action }`.
connect_yes = That is me
joined = Done: you are now { $name } on { $account }. `/connect off` unlinks the accounts.
joined_already = These accounts are linked already.
joined_by = { $name } on { $account } is now linked with you through the code that you requested. If this is not you, send `/connect off` here.
parted = Done: this account is separate again. The shared memory stays with the other account.
parted_by = { $name } ended the link: this account is separate again. The shared memory stays with { $name }.
parted_others = Done: the account that was linked by your code is separate again. The shared memory stays with you.
parted_already = This account is not linked with another one.
connected = Connected: I know you now. Say hello!
known_already = I know you already. Say hello!
stranger_by_code = I do not know you yet, so I cannot answer. Ask your admin for a code, and send me `/connect CODE`.
stranger_by_id = I do not know you yet, so I cannot answer. Ask your admin to allow your id: { $id }

## /new, /stop, /retry and /compact.

conversation_started = New conversation started.
making_given_up = I did not create the agent that you were designing here.
compact_busy = I am still working. Send /compact again when I am done.
compact_disabled = Summaries are turned off here (`summarization.enabled`).
compact_failed = The model did not write a usable summary, so nothing has changed. Try again later.
compact_not_enough = There is too little to summarize: the newest messages stay as they are, and a summary of the others has to save 400 tokens.
thread_busy = I am still working. Try again when I am done.
compacted = I summarized the conversation: the model now reads about { $after } tokens instead of { $before }.
nothing_running = Nothing is running.
nothing_to_retry = There is no question to ask again yet.
stopped = Stopped.
stopped_and_dropped =
    Stopped. { $count ->
        [one] One waiting message was dropped.
       *[other] { $count } waiting messages were dropped.
    }

## /mode.

mode_interrupt = a new message stops my work, and I answer it at once
mode_queue = a new message waits until I am done
mode_set = Mode `{ $name }`: { $about }.
mode_steer = a new message reaches me while I work
mode_unknown = There is no mode `{ $name }`. Choose `queue`, `steer` or `interrupt`.
modes = How I handle messages while I work:

## /models.

model_in_use = This conversation now uses `{ $name }`.
model_none = none
model_unknown = There is no model `{ $name }`.
models = Available models:
models_listed = /models lists the available models.
models_none = No models are configured.
blind_model = { $name } cannot see images, but `{ $seeing }` can: `/models { $seeing }` switches to it.
blind_models = { $name } cannot see images, and no other configured model can.

## /skills.

skill_withheld = The skill `/{ $skill }` is not available to `{ $agent }`. /skills lists the available skills.
skills = Skills:
skills_none = There are no skills here.
skills_usage = Start a message with a skill's name, followed by your request. I also use skills on my own when they fit.

## /secret.

secret_deleted = Deleted: `{ $name }`.
secret_kept = Stored: `{ $name }`. When you use a skill that needs it, the skill's commands find it in their environment. The assistant never sees it.
secret_message_gone = I deleted your message that contained it.
secret_message_local = I did not store the message that contained it. If you typed it in a terminal, it is still on the screen: clear it. If you typed it as an argument of `pudu chat`, it is also in the shell's history. `pudu secret set` reads the value from standard input instead.
secret_message_stays = Your message that contains it is still in this chat, and I cannot delete it. Please delete it yourself.
secret_missing = The skill `/{ $skill }` needs the secret `{ $name }`. Send it in a private chat with `/secret set { $name } value`. Until then the skill works without it.
secret_missing_about = The skill `/{ $skill }` needs the secret `{ $name }` ({ $about }). Send it in a private chat with `/secret set { $name } value`. Until then the skill works without it.
secret_missing_room = The skill `/{ $skill }` needs the secret `{ $name }`. Secrets are available in private chats only, because a group would share them. The skill works without it here.
secret_name_odd = A secret's name has letters, digits and `_`, and cannot be a variable that controls programs, such as PATH.
secret_privately = Secrets work in private chats only. Send me that there.
secret_seen = I did not store that: others may have read it here. Replace the secret where you got it, then send me the new one in a private chat.
secret_unknown = There is no secret `{ $name }`.
secret_usage = `/secret set NAME value` stores a secret, `/secret delete NAME` deletes it. I never show a value.
secret_value_unsure = I received no value for `{ $name }`, but a secret with that name is stored. If I was restarted just now, it may be the value that you sent or the one before: send `/secret set { $name } value` again to be sure. If your message with the value is still in this chat, delete it. `/secret` lists the stored secrets.
secret_value_missing = I have no value for `{ $name }`. Send it with `/secret set { $name } value`, also if a restart interrupted your last attempt.
secret_value_odd = A secret has 8 to 8,192 bytes and no control characters. I did not store this one.
secrets = Your secrets, by name:
secrets_full = You have the maximum number of secrets. Delete one first.
secrets_none = You have no secrets.
secrets_wanted = Your skills also need these:

## /usage and /memory.

memory_facts =
    My memory of this chat: { $count ->
        [one] one fact
       *[other] { $count } facts
    }.
memory_empty = My memory of this chat is empty.
memory_none = My memory of this chat has no match.
memory_usage = /memory lists the facts that I remember. Also: search WORDS, add FACT, forget ID, forget all, export (as a file), last (the facts used for the last answer), off, on.
memory_disabled = Your admin has turned memory off here.
memory_is_off = Memory is off: I learn nothing and use nothing. `/memory on` turns it on.
memory_off = Memory is off: I no longer learn facts or use the ones I have. `/memory forget all` deletes them.
memory_on = Memory is on.
memory_add_while_off = Memory is off, so I did not remember that. `/memory on` turns it on.
memory_added = Remembered as `{ $id }`.
memory_forgotten = Forgotten.
memory_all_forgotten = I forgot everything.
memory_unknown = There is no fact `{ $id }`. /memory lists the facts.
memory_refused = I cannot remember that: { $why }.
memory_last =
    I used these facts for the last answer:

    { $text }
memory_exported = Here are the facts that I remember.
memory_not_exported = I could not create the file. Try again later.
memory_last_none = I used no facts for the last answer.
memory_unreadable = I could not read my memory.
usage =
    Tokens in this conversation: { $read } read, { $written } written, { $total } total, in { $runs ->
        [one] one run
       *[other] { $runs } runs
    }.
think_high = hard, for difficult questions
think_levels = Thinking levels, for models that have them:
think_low = a little
think_medium = harder
think_off = not at all, which is fastest
think_on = the model's configured level
think_set = Thinking is set to `{ $name }` here: { $about }.
think_only_on = { $name } can only turn thinking on and off, so this means on.
think_unavailable = { $name } has no thinking levels. /models lists the other models.
think_unknown = There is no level `{ $name }`. /think lists the levels.
usage_cache = The provider had { $percent } % of the input in its cache.
usage_cost = Cost: { $cost }.
usage_cost_unknown =
    The cost of { $calls ->
        [one] one call
       *[other] { $calls } calls
    } is unknown: the model has no price here.
usage_estimated =
    The usage of { $calls ->
        [one] one call
       *[other] { $calls } calls
    } is estimated: the model's provider did not report it.
usage_caller_assistance = for suggestions
usage_caller_goal = for goals
usage_caller_lead = for answers
usage_caller_memory = for the memory
usage_caller_subagent = for sub-agents
usage_caller_summary = for summaries
usage_caller_title = for titles
usage_part = { $model }, { $caller }: { $read } read, { $written } written
usage_reasoning = { $tokens } of the written tokens were thoughts.
usage_privately = I report your own usage and budgets in a private chat: send me `/usage` there.
usage_today = Your usage today in all chats: { $total } tokens.
usage_unreadable = I could not read the usage. Try again in a moment.

## Budgets.

budget_of_run = The budget of this run
budget_of_person = Your budget
budget_of_room = The budget of this room
budget_of_account = The budget of this bot
budget_of_everybody = The shared budget of all users
budget_of_named = The budget of { $name }
budget_tokens = { $tokens } tokens
budget_used_day = { $whose } for today is used up. It resets at 00:00 UTC.
budget_used_month = { $whose } for this month is used up. It resets on the first, at 00:00 UTC.
budget_used_run = The budget of this run is used up, so I stop here. Write "go on" and I continue in a new run.
budget_short_day = { $whose } for today has { $left } of { $limit } left, too little for another answer. It resets at 00:00 UTC.
budget_short_month = { $whose } for this month has { $left } of { $limit } left, too little for another answer. It resets on the first, at 00:00 UTC.
budget_short_run = The budget of this run has { $left } of { $limit } left, too little for another answer, so I stop here. Write "go on" and I continue in a new run.
budget_scant_day = { $whose } for today is too small for another answer. It resets at 00:00 UTC.
budget_scant_month = { $whose } for this month is too small for another answer. It resets on the first, at 00:00 UTC.
budget_small_day = { $whose } is { $limit } per day, and this answer needs about { $needs }. Waiting does not help: /new starts a shorter conversation, and your admin can raise the limit ({ $key }).
budget_small_month = { $whose } is { $limit } per month, and this answer needs about { $needs }. Waiting does not help: /new starts a shorter conversation, and your admin can raise the limit ({ $key }).
budget_small_run = The budget of each run is { $limit }, and this answer needs about { $needs }. Waiting does not help: /new starts a shorter conversation, and your admin can raise the limit ({ $key }).
budget_busy = { $whose } is not used up, but other answers in progress may spend the rest. Try again in a few minutes.
budget_near_day = { $whose } for today is { $percent } % used. It resets at 00:00 UTC.
budget_near_month = { $whose } for this month is { $percent } % used. It resets on the first, at 00:00 UTC.
budget_cheaper = { $model } answers from now on.
budget_cheaper_now = The rest of the budget is too small for the other model, so { $model } answers.
budget_lines = Budgets:
budget_line_run = Each run may spend { $limit }.
budget_line_day = { $whose } for today: { $spent } of { $limit } spent, { $left } left until 00:00 UTC.
budget_line_month = { $whose } for this month: { $spent } of { $limit } spent, { $left } left until the first of next month, 00:00 UTC.

## /status.

health_connecting = connecting
health_degraded = degraded
health_refused = credentials refused
health_ready = ready
health_stopped = stopped
state_delivering = delivering an answer
state_idle = idle
state_working = working for { $seconds } s
status_agent = Agent: `{ $name }`
status_channel = Channel: `{ $account }` is { $state }
status_channel_error = last error: { $error }
status_channel_event = last event { $seconds } s ago
status_mode = While I work: `{ $name }` ({ $about })
status_model = Model: `{ $name }`
status_standby = `{ $name }` gave the last answer, because this model was unavailable
status_state = State: { $state }
status_thread = Active thread: `{ $thread }`
status_title = Title: { $title }
status_tokens =
    Tokens: { $total } in { $runs ->
        [one] one run
       *[other] { $runs } runs
    }
status_undelivered = Undelivered replies: { $number }
status_waiting = Waiting messages: { $number }

## /agent.

agent_answers = `{ $name }` answers here from now on.
agent_answers_for = `{ $name }` answers here from now on: { $about }.
agent_answers_now = `{ $name }` answers here.
agent_being_made = { $name } (in progress)
agent_broken = The agent `{ $name }` cannot be used: { $why }.
agent_broken_line = `{ $name }` does not work: { $why }
agent_exists = The agent `{ $name }` exists already.
agent_fixed = Your admin chose the agent for this chat; it cannot be changed here.
agent_here = ← answers here
agent_in_making = We are designing `{ $name }` here
agent_lead = the default agent
agent_name_long = `{ $name }` is too long for an agent's name: it can have at most { $most } characters.
agent_name_odd = `{ $name }` cannot be an agent's name: use letters, digits and hyphens.
agent_name_taken = `{ $name }` cannot be an agent's name: it has another meaning.
agent_not_made_here = Only admins of this bot create agents here.
agent_unknown = There is no agent `{ $name }`.
agent_unreadable = I could not read the agent. Your admin finds the reason in the log.
agents = Agents:
agents_full = There are { $most } agents already. Remove one first.
agents_listed = /agent lists the agents.
agents_new = `/agent new NAME` creates one.
agents_new_nameless = The new agent needs a name.
agents_new_usage = Write `/agent new NAME`, followed by the agent's purpose.
agents_switch = `/agent NAME` switches this conversation, `/agent default` back.
bootstrap_not_here = All users share the default agent, so only approvers of this bot can shape its personality.

## Buttons, and what came of them.

button_answer = Answer
button_approve = Approve
button_deny = Deny
button_retry = Try again
button_stop = Stop
choice_made = ✅ { $name } chose: { $label }

form_answered = ✅ { $name } answered.
form_date = Please enter a date as YYYY-MM-DD.
form_files = Please send these in the chat: { $names }
form_hint = Please answer each field in one message. Fields with * are required.
form_long = This is too long.
form_missing = Please fill this in.
form_not_yours = You cannot answer this.
form_number = Please enter a number.
form_option = Please choose one of the options: { $options }
form_over = These questions were answered already, or the conversation has moved on.
form_unread = I could not open the form. Try again in a moment, or answer in a message.
form_yes = Yes
form_yes_or_no = Please answer yes or no.

## Approvals.

approval_by_others = (Only approvers named by your admin can decide this.)
approval_in_file = (The full request comes with this question, as a file if this chat accepts one. Read it first: approval is possible only after it arrives.)
approval_late = This was decided already.
approval_not_yours = You cannot decide this.
approval_over = This request is over.
approval_question = 🔐 May I? { $request }
approval_unread = The full text has not reached this chat yet. Wait for it, read it, and press again. You can press Deny at any time.
approval_unstored = I could not save your decision. Try again in a moment.
approved = ✅ { $by } approved { $request }
approved_by_nobody = ⌛ { $request } was not approved in time
approved_somehow = ✅ { $request } was approved
asked_whole = 📄 This is my full request.
asked_whole_link = You can also read it [here]({ $link }).
denied = ⛔ { $by } denied { $request }
nobody_asked = ⛔ I did not do this: { $request }. Only approvers named by your admin can allow it, and they are not in this chat. Ask me in a group with one of them.

## A run at work.

running = Running { $tools }…
summarizing = Summarizing the conversation…
thinking = Thinking…
answer_follows = I am working on it. The answer follows.
waiting_for_decision = Waiting for your decision…
working_on = Sub-agents are working…
todos_done = { $count } done
todos_left = 📋 { $done } of { $all } steps done. Left: { $left }
task_gap = { "; " }
task_doing = 🔹 { $task }: { $tools }
task_thinking = 🔹 { $task }: thinking…
retrying_broken = The model's answer was broken; trying again…
retrying_busy = The model is busy; trying again in { $seconds } s…
retrying_elsewhere = The model does not answer; trying another one…
retrying_failed = The model's provider failed; trying again…
retrying_limited = Rate limited by the model's provider; retrying in { $seconds } s…
retrying_resting = The model failed repeatedly; trying again in { $seconds } s…
retrying_unreachable = The model cannot be reached; trying again…

## A run's end.

end_filtered = ⚠️ *The provider's content filter ended this answer. Rephrase your request, or leave out the part that it may object to.*
end_given_up = ⚠️ I was interrupted { $times } times while I worked on this, so I stopped trying.
end_length = ⚠️ *This is the longest answer that the model gives at once (`max_tokens`). Write "go on" and I continue.*
end_limit = ⚠️ *I reached my limit of steps for one request. Write "go on" and I continue.*
end_silent = (The assistant gave no answer.)
end_stopped = *Stopped.*
summarized = *The conversation had become long, so I summarized its earlier part. Some details may be lost.*
end_timeout = ⚠️ *I ran out of time. This is my work so far.*
end_too_late = I was offline for too long to answer this in time. Ask again if you still need it.

## Why a run failed.

failed_auth = The model's provider rejected the API key. Please contact your admin: the reason is in the log.
failed_broken = I had an internal error while I answered. Your admin finds it in the log.
failed_busy = The model is busy, and waiting did not help. Try again in a moment, or choose another model with /models.
failed_busy_long = The model is busy. Try again in { $minutes } minutes, or choose another model with /models.
failed_filtered = The provider's content filter rejected this. Rephrase your request, or leave out the part that it may object to.
failed_only_media = The model answered only with an image or another file, and I cannot pass those on. Ask for text, or choose another model with /models.
failed_only_thought = The model spent its whole answer on thinking. Ask for less at once. Your admin may raise the model's `max_tokens` or lower its thinking level.
failed_silent = The model gave no answer, even on a second attempt. Try again, or choose another model with /models.
failed_garbled = I could not read the model's answer. Try again.
failed_history = I could not read this conversation, so I cannot answer. Send your message again later.
failed_no_api = The model's address does not lead to an API. Please contact your admin: the model's `base_url` is wrong (it often ends in /v1). `pudu doctor` checks it.
failed_no_model = No model is configured. Please ask your admin to add one.
failed_quota = The model's account has no credit left. Please contact your admin, or choose another model with /models.
failed_rejected = The model's provider rejected the request, and a new attempt would not help. Please contact your admin: the reason is in the log, and often lies in the model's settings.
failed_too_long = This conversation has become too long for the model. /new starts a fresh one.
failed_unheard = I could not save your message. Send it again. Your admin finds the reason in the log.
failed_unknown_model = The model's provider does not know this model. /models lists the others. Please contact your admin: the model's name is wrong.
failed_unreachable = The model cannot be reached. Try again in a moment, or choose another model with /models.
failed_provider = The model's provider failed ({ $status }). Try again in a moment, or choose another model with /models.
failed_cut = The connection to the model broke. Try again in a moment, or choose another model with /models.
failed_unstored = I could not save this conversation. Your admin finds the reason in the log.

## Files that people send.

fetch_broken = ⚠️ `{ $name }` could not be saved. Your admin finds the reason in the log.
fetch_refused = ⚠️ `{ $name }` could not be fetched: the platform refused it ({ $why }).
fetch_stopped = ⚠️ `{ $name }` was not fetched: stopped.
fetch_too_large = ⚠️ `{ $name }` could not be fetched: it is larger than { $limit }.
fetch_too_many = ⚠️ `{ $name }` was not fetched: too many files at once.
fetch_unreachable = ⚠️ `{ $name }` could not be fetched: the platform could not be reached. Send it again.
unread_broken = ⚠️ `{ $name }` could not be read: the reader crashed. The file may be damaged or very unusual.
unread_damaged = ⚠️ `{ $name }` could not be read: it is damaged.
unread_empty = ⚠️ `{ $name }` could not be read: it has no text, perhaps only pictures.
unread_kind = ⚠️ `{ $name }` could not be read: its content does not match its type, or I do not support the type.
unread_large = ⚠️ `{ $name }` could not be read: it is too large.
unread_protected = ⚠️ `{ $name }` could not be read: it is protected by a password. Send it without one.
unread_slow = ⚠️ `{ $name }` could not be read: it took too long.
unread_unavailable = ⚠️ `{ $name }` could not be read just now. Send it again later.

## Recordings, and edits that come too late.

edit_ask_again = Ask again
edit_late = ✏️ I had already started on this message when you changed it. Press the button to ask again with the new text.
edit_late_long = ✏️ I had already started on this message when you changed it. To ask again, send the new text as a new message.
voice_deaf = 🔇 I cannot listen to `{ $name }`. Please write your message.
voice_failed = 🔇 `{ $name }` could not be transcribed: { $why }.

## Files that people get.

file_gone = ⚠️ `{ $name }` could not be sent: it no longer exists.
file_large = ⚠️ `{ $name }` could not be sent: it is too large.
file_link = 📎 [{ $name }]({ $link }) (this link works for one day)
file_unreadable = ⚠️ `{ $name }` could not be sent: it is unavailable.
files_left = { $names } and { $count } more
files_too_many = ⚠️ An answer can have at most { $most } files. Not sent: { $names }. Ask for them if you need them.
unsent = 📎 { $name } ({ $why })
unsent_empty = it is empty
unsent_failed = it could not be sent
unsent_gone = it no longer exists
unsent_large = it is larger than the { $megabytes } MB that { $platform } accepts
unsent_late = it could not be sent in time
unsent_not_file = it is not a file
unsent_uncertain = it may not have arrived

## What platforms add.

answer_by_number = Answer with just the number.
answer_refused = ⚠️ { $platform } does not accept my answer.
is_thinking = is thinking…
no_text = (no text)
only_you_see = _Only you can see this: I am not in this conversation. Invite me, and I answer for everyone._
press_again = Please try again in a moment.
press_unused = This button is not in use.
you = You

## Scheduled tasks.

schedule_failing = ⚠️ The schedule “{ $title }” failed { $failures } times in a row, so it is paused. The last reason: { $error }
schedules = Your scheduled tasks:
schedules_none = You have no scheduled tasks. Ask me to do something at a certain time, and I schedule it.
schedule_usage = `/schedule pause`, `resume`, `run` or `delete` with a name from the list changes a task.
schedule_unknown = You have no scheduled task { $name }. /schedule lists your tasks.
schedule_next = next: { $time }
schedule_is_paused = paused
schedule_is_running = running
schedule_is_over = ended
schedule_paused = “{ $title }” is paused.
schedule_resumed = “{ $title }” runs again. The next time is { $next }.
schedule_started = “{ $title }” starts now.
schedule_deleted = “{ $title }” is deleted.
schedule_off = Nothing starts at its time here: your admin has turned scheduled tasks off.
schedule_busy = This task is running. Please try again when it has ended.
schedule_ended = This task has ended. Ask me to schedule it again.
schedule_past = The time of this task is past. Ask me to schedule it again.
schedule_full = Too many scheduled tasks are running. Please try again in a moment.
