//! One suite of checks that every engine passes, and what only a file, or a killed process, can show.

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
mod size;
mod stored;
mod sweep;
mod talk;
mod tasks;
mod thread_search;
mod threads;
mod turns;
mod writer;

/// Makes of each check one test per engine.
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

/// Likewise, of checks that open the same database more than once.
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

/// Likewise, of what only a server can do.
macro_rules! on_a_server {
    ($($group:ident::$check:ident),* $(,)?) => {
        mod server {
            $(#[tokio::test] async fn $check() { super::fixture::postgres_place(super::$group::$check).await })*
        }
    };
}

on_every_engine! {
    client_runs::a_run_that_was_accepted_is_there_until_it_has_ended,
    client_runs::a_run_that_is_accepted_stops_others_by_the_same_write,
    client_runs::a_run_after_which_its_thread_goes_is_known_until_it_went,
    client_runs::a_run_knows_the_titles_that_it_found_and_left,
    client_runs::what_was_stopped_in_order_is_so_until_it_goes_on,
    client_runs::a_run_of_a_chat_is_known_until_its_answer_is_delivered,
    client_runs::a_run_that_has_not_ended_holds_its_thread_and_its_user,
    client_runs::threads_are_their_users_pinned_ones_first,
    thread_search::a_search_filters_sorts_and_counts,
    thread_search::pages_by_cursor_repeat_and_lose_nothing_while_others_write,
    identities::who_spoke_in_a_rooms_thread_is_its_member_as_long_as_they_are_linked,
    client_runs::a_thread_is_read_as_it_was_at_any_row,
    client_runs::the_newest_judgement_of_a_person_counts,
    accounts::a_subject_of_an_issuer_has_one_account_and_an_address_opens_none,
    accounts::the_last_administrator_stays_as_long_as_others_do,
    accounts::an_address_has_one_account_whatever_its_case,
    accounts::of_many_first_administrators_there_is_one,
    adoption::whoever_administers_first_gets_what_nobody_had_an_account_for,
    adoption::a_thread_at_work_is_not_given_away_and_goes_with_its_runs,
    adoption::what_several_people_told_stays_theirs,
    accounts::a_new_password_ends_sessions_and_a_new_hash_of_the_same_one_does_not,
    accounts::a_token_is_found_by_its_hash_until_it_ends,
    accounts::whose_account_goes_loses_sessions_and_tokens,
    imports::who_signs_in_follows_what_changed_there_unless_pudu_changed_them,
    imports::what_is_moved_in_is_there_once_and_a_thread_that_went_on_is_left,
    person::everything_of_a_person_is_told_and_then_gone_and_nothing_of_another,
    identities::a_code_joins_one_person_once_and_opens_nothing,
    identities::who_parts_leaves_nobody_behind_who_is_them_or_came_by_them,
    identities::who_parts_takes_their_memory_back_before_it_is_merged,
    identities::a_code_ends_when_its_owner_becomes_somebody_else,
    person::who_became_somebody_else_is_found_and_forgotten_as_who_they_were,
    identities::who_joins_another_brings_the_memory_unless_it_is_somebody_elses_too,
    learning::a_conversation_waits_once_and_is_read_up_to_where_it_was,
    learning::of_two_readers_one_reads_a_conversation,
    learning::what_matters_more_is_read_first_and_a_full_queue_takes_it_still,
    inbox::an_event_is_kept_once,
    inbox::where_a_stream_goes_on_is_kept_with_its_event_and_by_itself,
    inbox::an_edit_changes_what_waits_and_nothing_else,
    inbox::what_is_finished_waits_no_more_and_stays_known,
    turns::a_turn_carries_its_events_to_the_end,
    turns::the_first_reply_stays,
    turns::an_event_has_one_turn,
    turns::a_message_joins_a_turn_only_while_its_reply_is_open,
    turns::what_is_given_up_is_kept_to_look_at,
    turns::a_settled_turn_takes_nothing_more,
    turns::one_event_chooses_and_the_reply_is_shown_anew,
    turns::what_is_chosen_while_the_reply_is_delivered_is_shown_before_it_is_done,
    talk::a_place_keeps_its_choices_when_it_starts_anew,
    talk::the_conversation_that_was_talked_in_last_is_found,
    talk::a_conversation_is_at_work_from_its_question_until_its_reply_is_known,
    talk::a_message_knows_its_conversation,
    buffer::a_turn_is_given_each_message_once,
    buffer::a_redelivered_message_is_not_buffered_again,
    buffer::a_place_keeps_the_newest_messages_within_its_limits,
    buffer::an_edit_replaces_the_text_of_its_author,
    buffer::messages_expire_by_account_and_go_with_their_author,
    pairing::a_code_is_good_for_one_person_and_for_its_time,
    pairing::codes_do_not_pile_up,
    runs::a_run_is_counted_once_with_what_it_cost,
    runs::no_report_of_a_provider_is_too_large_to_be_added_up,
    runs::a_nul_is_stored_as_a_visible_sign,
    runs::what_is_spent_is_known_by_thread_person_and_day,
    budgets::a_call_is_settled_once_and_every_budget_counts_it,
    budgets::many_calls_at_once_stay_within_one_budget,
    budgets::a_limit_set_late_knows_what_was_spent_before,
    budgets::a_reply_is_as_long_as_the_budget_allows,
    budgets::the_cheaper_model_answers_from_its_share_on,
    budgets::a_refusal_is_the_last_resort_and_names_the_budget_to_wait_for,
    budgets::a_cheaper_model_goes_on_where_the_other_is_too_dear,
    budgets::shares_are_told_for_each_user_account_and_room_by_caller_and_model,
    tasks::what_sub_agents_did_is_read_in_order_and_by_pages_and_is_no_part_of_the_state,
    log::a_thread_is_the_fold_of_what_was_appended,
    log::an_append_behind_the_wrong_position_changes_nothing,
    log::of_many_appends_at_one_position_one_wins,
    log::a_thread_of_much_history_reads_the_same_past_its_snapshot,
    log::a_thread_that_only_grows_is_not_copied,
    sweep::what_is_old_goes_and_the_rest_stays,
    threads::a_thread_is_as_large_as_its_log_and_its_files,
    threads::a_deleted_thread_leaves_nothing_but_its_audit,
    threads::a_thread_in_use_is_not_deleted,
    threads::of_the_audit_each_account_keeps_what_it_may,
    approvals::a_question_is_decided_once,
    approvals::a_call_asks_once,
    audit::a_deed_is_there_before_it_ends,
    audit::a_deed_whose_end_nobody_noted_ended_with_its_run_or_with_the_process,
    recall::what_fits_a_question_is_found_best_first,
    recall::an_entry_replaces_the_older_one_and_again_changes_nothing,
    recall::nothing_of_another_scope_comes_back,
    recall::any_text_can_be_indexed,
    recall::what_is_forgotten_is_gone_and_the_rest_stays,
    recall::what_was_said_long_ago_goes_and_facts_stay,
    recall::a_rare_word_among_common_ones_is_found,
    recall::every_engine_gives_the_same_order,
    writer::many_accepts_share_a_commit,
    writer::a_write_that_fails_leaves_its_neighbours_alone,
    writer::a_write_that_the_database_rejects_leaves_its_neighbours_alone,
    writer::a_closed_store_says_so,
}

on_every_lasting_engine! {
    person::of_every_table_it_is_known_what_is_forgotten,
    lasting::what_was_answered_is_there_after_a_hard_end,
    lasting::a_process_takes_over_the_runs_of_the_one_before,
    lasting::closing_writes_what_waits,
    lasting::two_that_start_at_once_both_start,
    lasting::two_instances_do_not_overwrite_each_other,
    lasting::a_newer_database_is_refused,
    lasting::a_log_row_has_its_time_and_its_run,
    budgets::what_was_spent_before_each_call_had_a_row_is_kept,
    budgets::whatever_happens_counters_are_the_sum_of_calls,
    budgets::what_a_dead_process_reserved_is_settled_for_its_prompt,
    budgets::who_is_forgotten_between_a_kill_and_a_start_stops_no_start,
    recall::the_statistics_are_exact_and_no_word_is_left,
    lasting::threads_from_before_they_had_a_table_have_rows_in_it,
    lasting::turns_from_before_runs_were_one_record_go_on,
    lasting::a_conversation_of_the_terminal_becomes_a_named_thread_with_its_choices,
    lasting::accounts_of_providers_from_before_they_knew_issuers_go_on,
}

on_a_server! {
    outage::what_is_asked_while_a_server_restarts_is_done_after_it,
    outage::what_was_committed_while_the_answer_was_lost_is_not_done_again,
    outage::what_a_lost_connection_began_and_did_not_end_locks_nobody_out,
    outage::a_server_that_vanishes_without_a_word_is_left_for_a_new_connection,
    outage::a_server_that_vanishes_between_two_calls_holds_up_neither,
    outage::a_caller_that_cannot_wait_gets_an_error,
    outage::nobody_waits_for_a_store_that_is_closed,
    lasting::a_database_that_somebody_works_on_keeps_its_shape,
    outage::a_claim_outlives_its_session,
    outage::a_claim_that_another_process_took_is_lost,
}
