"""Every workload, with where it begins, and who meets whom."""

from __future__ import annotations

from tests.reliability.support import workloads, workloads_rare, workloads_upkeep
from tests.reliability.support.recordings import Meeting, Workload, empty_folder, fresh

USUAL = [
    Workload(run, fresh)
    for run in (
        workloads.exports,
        workloads.received,
        workloads.objects_alone,
        workloads.settings,
        workloads.appends,
        workloads.batch,
        workloads.fast,
        workloads.front_door,
        workloads.diverged,
        workloads.seals,
        workloads.refs,
        workloads.resets,
        workloads.many_refs,
        workloads.bundles,
        workloads.imports,
        workloads.packs,
        workloads.collects,
    )
]
RARE = [
    Workload(workloads_rare.cut_short, fresh),
    Workload(workloads_rare.fails_to_sync, fresh),
    Workload(workloads_rare.fails_to_sync_without_links, fresh),
    Workload(workloads_rare.without_links, fresh),
    Workload(workloads_rare.begins_another_line, fresh),
    Workload(workloads_rare.makes_index, workloads_rare.without_index),
    Workload(workloads_rare.writes_again, fresh),
    Workload(workloads_rare.seals_log, workloads_rare.linked_log, workloads_rare.LOGS),
    Workload(workloads_rare.own_files, fresh),
    Workload(workloads_rare.local_files, fresh),
]
UPKEEP = [
    Workload(workloads_upkeep.purges, workloads_upkeep.secretive, workloads_upkeep.SECRETIVE),
    Workload(
        workloads_upkeep.purges_packed,
        workloads_upkeep.sealed_secret,
        workloads_upkeep.SECRETIVE,
    ),
    Workload(workloads_upkeep.purges_ids, workloads_upkeep.secretive, workloads_upkeep.SECRETIVE),
    Workload(workloads_upkeep.issues_anew, workloads_upkeep.unsealed_secret),
    Workload(workloads_upkeep.takes_tombstones, fresh),
    Workload(workloads_upkeep.repairs, workloads_upkeep.damaged),
    Workload(workloads_upkeep.repairs_settings, workloads_upkeep.torn_settings),
    Workload(workloads_upkeep.repairs_without_links, workloads_upkeep.damaged),
    Workload(workloads_upkeep.adopts, workloads_upkeep.moved_by_git),
    Workload(workloads_upkeep.adopts_mine, workloads_upkeep.moved_by_git),
]
WORKLOADS = [Workload(workloads.init, empty_folder), *USUAL, *RARE, *UPKEEP]


def named(name: str) -> Workload:
    """Return the workload of this name."""
    [found] = [each for each in (*WORKLOADS, *_ONLY_MET) if each.name == name]
    return found


_ONLY_MET = [
    Workload(run, fresh)
    for run in (
        workloads.loose,
        workloads.takes_large,
        workloads.goes_on,
        workloads.seals_on,
        workloads.says_large,
        workloads.takes_large_again,
    )
]
MEETINGS = [
    Meeting(named(first), named(second))
    for firsts, second in (
        (("appends",), "appends"),
        (("takes_large",), "says_large"),
        (("takes_large",), "takes_large_again"),
        (("objects_alone", "seals", "refs", "diverged"), "seals_on"),
        (("loose", "appends", "batch", "settings", "refs", "packs"), "goes_on"),
        (("purges",), "purges"),
        (("purges_ids",), "purges_ids"),
        (("repairs",), "repairs"),
        (("adopts_mine",), "adopts_mine"),
    )
    for first in firsts
]
"""A process is killed in one workload, and another runs the second; short first."""
