//! What people complained about in public of tools that run commands or keep files
//! elsewhere, and the test that would find it here. A test of this folder holds that
//! each of them exists.

/// What is done about a complaint.
pub(crate) enum Proof {
    /// These tests would find it: `FILE::FUNCTION`.
    Tests(&'static [&'static str]),
    /// It can't happen here.
    DoesNotApply(&'static str),
}

use Proof::{DoesNotApply, Tests};

pub(crate) const COMPLAINTS: &[(&str, Proof)] = &[
    // Lost data and deletions.
    (
        "a machine that was made anew under the old name had its tree taken for the truth",
        Tests(&[
            "tests/cli/sync_guards.rs::another_machine_under_the_old_name_is_never_taken_as_truth",
            "tests/cli/renew.rs::a_rebuilt_vm_is_refused_until_a_person_renews_it",
        ]),
    ),
    (
        "a reset of the sync's own state deleted files",
        Tests(&["sync/tests/engine/apply.rs::a_lost_or_damaged_state_deletes_nothing"]),
    ),
    (
        "a listing that failed was read as \"everything was deleted\"",
        Tests(&[
            "sync/tests/engine/talk.rs::a_line_that_breaks_at_any_message_leaves_nothing_that_the_next_sync_does_not_complete",
            "tests/cli/sync_guards.rs::many_deletions_and_an_empty_copy_wait_for_a_person",
        ]),
    ),
    (
        "a wrong path in the configuration wiped a folder on the other machine",
        Tests(&["tests/cli/sync_guards.rs::a_folder_that_is_not_ours_or_a_link_is_left_alone"]),
    ),
    (
        "ignored build outputs on the other machine were removed",
        Tests(&[
            "sync/tests/engine/apply.rs::build_outputs_on_the_vm_stay_there_and_hold_up_nobody",
        ]),
    ),
    (
        "a folder that had become a link led to deletions outside",
        Tests(&[
            "tests/cli/sync_guards.rs::a_folder_that_became_a_link_on_the_vm_is_never_gone_through",
        ]),
    ),
    (
        "most of a tree deleted on one side was deleted on the other without a word",
        Tests(&["tests/cli/sync_guards.rs::many_deletions_and_an_empty_copy_wait_for_a_person"]),
    ),
    (
        "a folder with ignored files could never be deleted, and blocked the rest",
        Tests(&[
            "sync/tests/engine/apply.rs::build_outputs_on_the_vm_stay_there_and_hold_up_nobody",
            "sync/tests/engine/apply.rs::a_file_in_the_place_of_a_folder_with_ignored_files_is_left_and_said",
        ]),
    ),
    (
        "what is ignored differed between the two directions",
        Tests(&["sync/tests/engine/reconcile.rs::each_change_goes_to_the_other_side_or_is_named"]),
    ),
    // Stale copies.
    (
        "the second run printed what the old program prints",
        Tests(&[
            "tests/cli/sync_run.rs::a_run_has_every_edit_and_what_it_wrote_comes_back",
            "tests/rounds/edits.py::edits",
        ]),
    ),
    (
        "kept times left make and cargo on old code; new times built everything anew",
        Tests(&[
            "tests/cli/sync_run.rs::make_builds_the_new_code_and_then_nothing",
            "sync/tests/engine/apply.rs::what_arrives_has_the_time_of_its_arrival_and_what_was_there_keeps_its_own",
        ]),
    ),
    (
        "a sync during a build gave files a time before its start",
        Tests(&[
            "sync/tests/engine/apply.rs::what_arrives_has_the_time_of_its_arrival_and_what_was_there_keeps_its_own",
        ]),
    ),
    (
        "an edit of the same size in the same second was missed",
        Tests(&[
            "sync/tests/engine/apply.rs::a_hundred_edits_of_one_length_within_a_moment_all_arrive",
            "tests/cli/sync_run.rs::a_run_has_every_edit_and_what_it_wrote_comes_back",
        ]),
    ),
    (
        "files weren't sent again to a machine that was replaced",
        Tests(&[
            "sync/tests/engine/talk.rs::a_copy_that_is_gone_is_made_again_and_deletes_nothing",
        ]),
    ),
    (
        "new files weren't synced, only edits",
        Tests(&[
            "sync/tests/engine/reconcile.rs::each_change_goes_to_the_other_side_or_is_named",
            "tests/cli/sync_watch.rs::every_change_on_either_side_is_soon_on_the_other",
        ]),
    ),
    (
        "many files deleted and made again at once were lost",
        Tests(&["sync/tests/engine/watch.rs::every_change_is_told"]),
    ),
    (
        "a watcher's queue that overflowed went unnoticed",
        Tests(&[
            "sync/tests/engine/watch.rs::another_watch_and_a_queue_that_was_too_small_tell_nothing",
        ]),
    ),
    (
        "what was written into a new folder before it was watched was missed",
        Tests(&[
            "sync/tests/engine/watch.rs::every_change_is_told",
            "tests/cli/sync_watch.rs::every_change_on_either_side_is_soon_on_the_other",
        ]),
    ),
    (
        "too few watches were told as a full disk",
        Tests(&[
            "tests/cli/sync_watch.rs::with_too_few_watches_both_sides_are_compared_and_the_setting_is_named",
        ]),
    ),
    (
        "a watcher's queue overflowed on Windows",
        DoesNotApply("boxery doesn't run on Windows"),
    ),
    (
        "an edit took seconds to arrive",
        Tests(&["tests/cli/sync_run.rs::a_run_has_every_edit_and_what_it_wrote_comes_back"]),
    ),
    (
        "an agent in a worktree ran its tests in the main checkout's copy",
        Tests(&[
            "pin/tests/pins/worktree.rs::a_pin_covers_every_worktree_of_the_repository_wherever_it_lies",
        ]),
    ),
    (
        "one agent's edits made another one's run fail",
        Tests(&["tests/cli/sync_run.rs::a_change_here_while_the_command_runs_is_told"]),
    ),
    (
        "tracked files that are ignored were skipped",
        Tests(&[
            "sync/tests/trees/what_counts.rs::a_tracked_file_counts_though_it_is_ignored",
            "sync/tests/engine/talk.rs::a_tracked_file_in_an_ignored_folder_is_synced_both_ways",
        ]),
    ),
    // Conflicts and git.
    (
        "a conflict couldn't be ended, or ended with one side's work lost",
        Tests(&[
            "tests/cli/sync.rs::what_changed_on_both_sides_is_kept_on_both_until_a_person_takes_one",
        ]),
    ),
    (
        "`.git` was synced as files, and broke",
        Tests(&[
            "sync/tests/trees/what_counts.rs::dot_git_never_counts_at_any_level",
            "tests/cli/git.rs::repositories_of_every_form_are_the_same_on_the_vm",
        ]),
    ),
    (
        "a file rewritten on the other side while it was pushed made an endless loop",
        Tests(&["sync/tests/engine/apply.rs::what_is_written_in_the_last_moment_is_never_lost"]),
    ),
    // Names, links, permissions.
    (
        "one absolute or dangling link stopped everything",
        Tests(&["sync/tests/engine/apply.rs::links_are_data_and_never_followed"]),
    ),
    (
        "permissions were widened, or the executable bit lost",
        Tests(&[
            "tests/cli/sync.rs::a_file_that_can_run_is_one_there_and_links_are_data",
            "sync/tests/engine/apply.rs::a_file_that_was_private_stays_private_when_it_is_written",
        ]),
    ),
    (
        "two names that differ in case were merged in silence",
        Tests(&[
            "sync/tests/engine/reconcile.rs::names_that_are_one_on_the_laptops_disk_never_meet_there",
        ]),
    ),
    (
        "one name in two Unicode forms was deleted and made in turns",
        Tests(&[
            "sync/src/spelling.rs::names_fold_as_the_disk_does",
            "sync/tests/engine/apply.rs::names_of_any_bytes_and_lengths_arrive",
        ]),
    ),
    // Commands.
    (
        "a killed client left its command running",
        Tests(&[
            "tests/cli/ending.rs::a_client_that_is_ended_takes_the_whole_tree_along",
            "tests/cli/guardian.rs::a_client_that_is_killed_with_its_group_takes_the_whole_tree_along_at_once",
            "tests/rounds/kills.py::kills",
        ]),
    ),
    (
        "a background process held up the command's end",
        Tests(&["helper/tests/helper/runs.rs::a_background_child_does_not_hold_up_the_end"]),
    ),
    (
        "a hook left pipes, redirections and `bash -c` local",
        Tests(&[
            "tests/cli/hook.rs::guard_denies_every_recorded_shell_call_and_names_the_way",
            "router/tests/router/decide.rs::nothing_but_a_plain_allowed_command_stays_local",
        ]),
    ),
    (
        "a hook was passed over because the folder was gone",
        Tests(&["tests/cli/hook.rs::a_call_that_left_a_pinned_project_is_still_pinned"]),
    ),
    (
        "exit status 0 though bringing files back had failed",
        Tests(&["tests/cli/sync_run.rs::a_sync_that_fails_never_loses_the_runs_own_status"]),
    ),
    (
        "arguments were quoted once too often or too little",
        Tests(&["tests/cli/argv.rs::any_bytes_come_back_as_they_went"]),
    ),
    (
        "a command of hundreds of kilobytes failed",
        Tests(&["remote/tests/shells.rs::a_text_of_any_length_runs_as_one_argument_would"]),
    ),
    (
        "a signal, a lost link and an exit status looked the same",
        Tests(&["remote/tests/run.rs::status_and_streams_are_exact"]),
    ),
    (
        "one unread stream stalled all others",
        Tests(&[
            "remote/tests/reattach.rs::a_reader_that_stalls_stalls_nobody_else",
            "tests/rounds/load.py::stalled",
        ]),
    ),
    (
        "many commands at once failed at the server's limit of sessions",
        Tests(&[
            "remote/tests/boot.rs::one_session_at_a_time_is_enough",
            "tests/rounds/load.py::crowd",
        ]),
    ),
    // SSH.
    (
        "it failed under fish or tcsh",
        Tests(&["remote/tests/shells.rs::any_arguments_come_out_as_they_went_in"]),
    ),
    (
        "what a start-up file prints broke the protocol",
        Tests(&["remote/tests/boot.rs::megabytes_of_noise_stand_before_it"]),
    ),
    (
        "a home that is full, read-only or without execution, or half an upload, failed badly",
        Tests(&[
            "remote/tests/boot.rs::a_home_that_takes_it_not_is_passed_by",
            "remote/tests/boot.rs::one_that_came_half_is_never_started",
        ]),
    ),
    (
        "two versions at once broke each other",
        Tests(&["tests/cli/daemon.rs::a_newer_build_takes_over_and_old_runs_end_well"]),
    ),
    (
        "a stale socket, or one with too long a path",
        Tests(&[
            "tests/cli/daemon.rs::a_state_folder_with_a_long_path_has_one_too",
            "tests/cli/daemon.rs::it_ends_when_nobody_comes_and_when_its_socket_is_gone",
        ]),
    ),
    (
        "the user's ssh configuration was read otherwise than ssh reads it",
        Tests(&[
            "remote/tests/resolve.rs::a_configuration_means_what_openssh_means_or_is_left_to_it",
        ]),
    ),
    (
        "a program that is there in the user's shell wasn't found",
        Tests(&["helper/tests/helper/login.rs::path_is_the_login_shells_whichever_file_sets_it"]),
    ),
    (
        "slow start-up files were paid for with each command",
        Tests(&[
            "tests/cli/daemon.rs::the_first_command_starts_it_and_the_next_one_uses_its_connection",
        ]),
    ),
    (
        "a laptop that had slept hung in a dead connection",
        Tests(&[
            "tests/rounds/cuts.py::silence",
            "remote/tests/hosts.rs::a_silent_server_is_a_time_out",
        ]),
    ),
    (
        "a changed or revoked host key was accepted",
        Tests(&["remote/tests/hosts.rs::known_hosts_mean_what_openssh_means"]),
    ),
    (
        "the rsync of a Mac lacks what was asked of it",
        DoesNotApply("boxery starts no rsync"),
    ),
    // Load.
    (
        "hundreds of thousands of ignored files cost watches and processor time",
        Tests(&[
            "sync/tests/engine/watch.rs::a_folder_that_is_not_watched_says_nothing",
            "tests/cli/sync_watch.rs::ignored_folders_are_neither_watched_nor_read_again",
        ]),
    ),
    (
        "connections that came and went left processes and memory behind",
        Tests(&[
            "helper/tests/helper/load.rs::connections_that_come_and_go_leave_nothing",
            "tests/rounds/load.py::cycles",
        ]),
    ),
    (
        "an ignored path is wanted once",
        Tests(&["tests/cli/cp.rs::files_go_to_the_copy_and_come_back"]),
    ),
];
