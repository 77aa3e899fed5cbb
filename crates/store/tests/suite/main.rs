//! Checks that every engine passes, and checks that need a file, a server or a killed process.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

mod accounts;
mod adoption;
mod approvals;
mod audit;
mod budgets;
mod buffer;
mod client_runs;
mod crash;
mod damage;
mod fixture;
mod full;
mod identities;
mod imports;
mod inbox;
mod lasting;
mod learning;
mod log;
mod outage;
mod pairing;
mod person;
mod recall;
mod runs;
mod schedules;
mod size;
mod stored;
mod sweep;
mod talk;
mod tasks;
mod thread_search;
mod threads;
mod turns;
mod writer;

/// Generates one test per engine for each check.
macro_rules! on_every_engine {
    ($($group:ident::$check:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $check() { super::fixture::memory(super::$group::$check).await })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $check() { super::fixture::sqlite(super::$group::$check).await })*
        }
        mod postgres {
            $(#[tokio::test] async fn $check() { super::fixture::postgres(super::$group::$check).await })*
        }
    };
}

/// The same for checks that open a database more than once.
macro_rules! on_every_lasting_engine {
    ($($group:ident::$check:ident),* $(,)?) => {
        mod lasting_sqlite {
            $(#[tokio::test] async fn $check() { super::fixture::sqlite_place(super::$group::$check).await })*
        }
        mod lasting_postgres {
            $(#[tokio::test] async fn $check() { super::fixture::postgres_place(super::$group::$check).await })*
        }
    };
}

/// The same for checks that need a server.
macro_rules! on_a_server {
    ($($group:ident::$check:ident),* $(,)?) => {
        mod server {
            $(#[tokio::test] async fn $check() { super::fixture::postgres_place(super::$group::$check).await })*
        }
    };
}

on_every_engine! {
    client_runs::an_accepted_run_is_listed_until_it_ends,
    client_runs::accepting_a_run_stops_others_in_the_same_write,
    client_runs::a_run_with_a_temporary_thread_is_listed_until_the_thread_is_deleted,
    client_runs::a_run_has_the_titles_before_and_after_it,
    client_runs::an_orderly_stop_is_recorded_until_the_run_resumes,
    client_runs::a_chat_run_is_kept_until_its_answer_is_delivered,
    client_runs::an_active_run_prevents_deletion_of_its_thread_and_user,
    client_runs::a_users_threads_are_listed_with_pinned_ones_first,
    thread_search::a_search_filters_sorts_and_counts,
    thread_search::pages_repeat_and_lose_nothing_during_concurrent_writes,
    identities::the_author_of_a_room_message_is_a_thread_member_while_linked,
    client_runs::a_thread_can_be_read_as_of_any_row,
    client_runs::the_newest_judgement_of_a_person_counts,
    accounts::a_subject_of_an_issuer_has_one_account_and_an_email_address_gives_no_access,
    accounts::the_last_administrator_cannot_be_removed_while_other_accounts_exist,
    accounts::an_email_address_has_one_account_regardless_of_case,
    accounts::only_one_of_many_first_administrators_is_created,
    adoption::the_first_administrator_adopts_threads_from_before_accounts,
    adoption::a_busy_thread_is_not_adopted_and_its_runs_move_with_it,
    adoption::threads_and_memory_of_several_people_are_not_adopted,
    accounts::a_new_password_ends_sessions_but_a_rehash_does_not,
    accounts::a_token_is_found_by_its_hash_until_it_expires,
    accounts::removing_an_account_removes_its_sessions_and_tokens,
    imports::imported_logins_follow_deerflow_unless_pudu_changed_them,
    imports::imports_are_stored_once_and_a_continued_thread_is_not_overwritten,
    schedules::a_due_time_starts_once_and_the_task_gets_its_next_time,
    schedules::starts_by_hand_launch_one_run_and_keep_the_schedule,
    schedules::the_only_run_of_a_task_ends_it,
    schedules::a_task_that_keeps_failing_is_paused_with_one_notice,
    schedules::a_chat_gets_a_due_time_as_an_event,
    schedules::a_command_that_drops_waiting_tasks_ends_each_as_stopped,
    schedules::a_task_follows_its_persons_user_and_is_deleted_with_them,
    schedules::a_required_existing_thread_is_used,
    person::all_data_of_a_person_and_no_other_is_exported_and_deleted,
    identities::a_code_links_one_person_once_and_admits_nobody,
    identities::unlinking_a_person_also_unlinks_everyone_linked_through_them,
    identities::an_unlinked_person_keeps_memory_that_is_not_merged_yet,
    identities::a_code_expires_when_its_owner_becomes_another_user,
    person::data_of_a_linked_person_from_before_the_link_is_found_and_deleted,
    identities::linking_moves_the_memory_unless_another_person_shares_it,
    learning::a_conversation_waits_once_and_is_read_up_to_its_recorded_position,
    learning::only_one_of_two_readers_reads_a_conversation,
    learning::important_conversations_are_read_first_and_accepted_by_a_full_queue,
    inbox::an_event_is_kept_once,
    inbox::the_position_of_a_stream_is_stored_with_or_without_an_event,
    inbox::an_edit_changes_only_a_waiting_event,
    inbox::a_finished_event_no_longer_waits_and_is_still_a_duplicate,
    turns::events_are_done_when_their_turn_ends,
    turns::the_first_reply_is_kept,
    turns::an_event_has_one_turn,
    turns::a_message_joins_a_turn_only_until_its_reply_is_stored,
    turns::undeliverable_replies_are_kept_for_inspection,
    turns::a_finished_turn_accepts_no_changes,
    turns::only_the_first_choice_counts_and_the_reply_is_updated,
    turns::a_choice_during_delivery_is_shown_before_the_turn_is_done,
    talk::a_chat_keeps_its_settings_in_a_new_thread,
    talk::the_most_recent_conversation_of_a_chat_is_found,
    talk::a_conversation_is_busy_until_its_reply_is_stored,
    talk::a_message_is_mapped_to_its_conversation,
    buffer::a_turn_gets_each_message_once,
    buffer::a_redelivered_message_is_not_buffered_again,
    buffer::a_chat_keeps_the_newest_messages_within_its_limits,
    buffer::an_edit_replaces_the_text_of_its_author,
    buffer::messages_expire_by_account_and_are_deleted_with_their_author,
    pairing::a_code_admits_one_person_until_it_expires,
    pairing::the_number_of_open_codes_is_limited,
    runs::a_run_is_counted_once_with_its_cost,
    runs::huge_reported_usages_do_not_overflow,
    runs::a_nul_is_stored_as_a_replacement_character,
    runs::spending_is_summed_by_thread_person_and_day,
    budgets::a_call_is_settled_once_in_every_budget,
    budgets::many_calls_at_once_stay_within_one_budget,
    budgets::a_new_limit_includes_earlier_spending,
    budgets::the_budget_limits_the_length_of_a_reply,
    budgets::the_cheaper_model_answers_above_its_threshold,
    budgets::a_refusal_is_the_last_resort_and_names_the_budget_to_wait_for,
    budgets::the_cheaper_model_answers_if_the_other_is_too_expensive,
    budgets::spending_is_reported_by_user_account_room_caller_and_model,
    tasks::sub_agent_steps_are_paged_in_order_outside_the_thread_state,
    log::a_thread_is_the_fold_of_its_updates,
    log::an_append_at_a_wrong_position_changes_nothing,
    log::only_one_of_many_appends_at_one_position_succeeds,
    log::a_long_thread_reads_the_same_after_its_snapshot,
    log::no_snapshot_is_written_for_a_thread_that_only_grows,
    sweep::only_old_rows_are_swept,
    threads::the_size_of_a_thread_is_that_of_its_log_and_files,
    threads::a_deleted_thread_leaves_nothing_but_its_audit,
    threads::a_thread_in_use_is_not_deleted,
    threads::audit_retention_is_set_by_account,
    approvals::a_question_is_answered_once,
    approvals::a_call_creates_only_one_question,
    audit::an_action_is_recorded_before_it_ends,
    audit::an_action_without_a_recorded_end_ends_with_its_run_or_the_process,
    recall::entries_are_found_in_order_of_relevance,
    recall::an_entry_replaces_an_older_one_and_repeating_it_changes_nothing,
    recall::recall_never_returns_entries_of_another_scope,
    recall::any_text_can_be_indexed,
    recall::only_forgotten_entries_are_deleted,
    recall::old_turns_expire_and_facts_do_not,
    recall::a_rare_word_among_common_ones_is_found,
    recall::all_engines_return_the_same_order,
    writer::many_accepts_share_a_commit,
    writer::a_failing_write_does_not_affect_its_batch,
    writer::a_write_rejected_by_the_database_does_not_affect_its_batch,
    writer::a_closed_store_returns_an_error,
}

on_every_lasting_engine! {
    person::the_deletion_rule_of_every_table_is_listed,
    lasting::acknowledged_writes_survive_a_kill,
    lasting::a_process_takes_over_the_runs_of_the_previous_one,
    lasting::closing_completes_waiting_writes,
    lasting::two_simultaneous_starts_both_succeed,
    lasting::two_instances_do_not_overwrite_each_other,
    lasting::a_newer_database_is_refused,
    lasting::a_log_row_has_a_time_and_a_run,
    budgets::spending_from_before_calls_had_rows_is_kept,
    budgets::counters_are_always_the_sum_of_calls,
    budgets::reservations_of_a_dead_process_are_settled_at_the_cost_of_the_prompt,
    budgets::a_person_deleted_between_a_kill_and_a_start_does_not_prevent_the_start,
    recall::statistics_are_exact_after_entries_are_forgotten,
    lasting::threads_from_before_their_table_existed_get_rows,
    lasting::turns_from_before_unified_run_records_continue,
    lasting::a_terminal_conversation_becomes_a_named_thread_with_its_settings,
    lasting::provider_accounts_from_before_issuers_remain_usable,
}

on_a_server! {
    outage::calls_during_a_restart_of_the_server_complete_after_it,
    outage::a_commit_whose_answer_was_lost_is_not_repeated,
    outage::an_unfinished_transaction_of_a_lost_connection_blocks_nothing,
    outage::a_silent_connection_is_replaced,
    outage::an_outage_between_two_calls_delays_neither,
    outage::an_impatient_caller_gets_an_error,
    outage::a_closed_store_fails_waiting_calls,
    lasting::a_database_in_use_is_not_migrated,
    outage::a_claim_outlives_its_session,
    outage::a_claim_taken_by_another_process_is_lost,
}
