"""Who waits is told for whom, and where locks and syncs cannot be relied on that is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store.file_systems import SOUND, UNKNOWN, UNSOUND, kind_of

MOUNTS = r"""27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
25 24 0:23 / /dev/shm rw,relatime shared:3 - tmpfs tmpfs rw,size=24684084k
40 27 0:40 / /home/ada rw,relatime shared:9 master:2 - nfs4 server:/home rw,vers=4.2,local_lock=none
41 40 0:41 / /home/ada/local rw - xfs /dev/vdb rw,attr2
42 27 0:42 / /mnt/with\040a\040space rw - cifs //host/share rw,vers=3.1.1
43 27 0:43 / /mnt/far rw - fuse.sshfs ada@host: rw,user_id=0
44 27 0:44 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs;path=C:\;uid=0
45 27 0:45 / /host rw - 9p hostshare rw,trans=virtio
46 27 0:46 / /vagrant rw - vboxsf vagrant rw
47 27 0:47 / /container rw - overlay overlay rw,lowerdir=/a,upperdir=/b
48 27 0:48 / /passing rw - overlay overlay rw,lowerdir=/a,volatile
49 27 0:49 / /quick rw - ext4 /dev/vdc rw,nobarrier
50 27 0:50 / /stick rw - vfat /dev/sda1 rw
51 27 0:51 / /cluster rw - lustre a@tcp:/x rw,localflock
52 27 0:52 / /cluster/locked rw - lustre a@tcp:/x rw,flock
53 27 0:53 / /new rw - newfs /dev/vdd rw
54 27 0:54 / /twice rw - nfs server:/a rw
55 54 0:55 / /twice rw - btrfs /dev/vde rw
56 27 0:56 / /windows rw - fuseblk /dev/sda2 rw
this line has no such form
"""
CASES = [
    # path, name, locks, durable, links
    ("/srv/project/.trace", "ext4", True, True, True),
    ("/dev/shm/project", "tmpfs", True, False, True),
    ("/dev/shmoo", "ext4", True, True, True),
    ("/home/ada", "nfs4", False, True, True),
    ("/home/ada/project/.trace", "nfs4", False, True, True),
    ("/home/ada/local/project", "xfs", True, True, True),
    ("/mnt/with a space/project", "cifs", False, True, False),
    ("/mnt/far/project", "fuse.sshfs", False, False, False),
    ("/mnt/c/Users/ada", "drvfs", False, True, True),
    ("/host/project", "9p", False, False, True),
    ("/vagrant", "vboxsf", False, False, False),
    ("/container/project", "overlay", True, True, True),
    ("/passing/project", "overlay", True, False, True),
    ("/quick/project", "ext4", True, False, True),
    ("/stick/project", "vfat", True, True, False),
    ("/cluster/project", "lustre", False, True, True),
    ("/cluster/locked/project", "lustre", True, True, True),
    ("/twice/project", "btrfs", True, True, True),
    ("/windows/project", "fuseblk", True, True, True),
]


@pytest.mark.parametrize(("path", "name", "locks", "durable", "links"), CASES)
def test_what_a_file_system_does_not_keep_is_known(
    path: str, name: str, locks: bool, durable: bool, links: bool
) -> None:
    found = kind_of(path, table=MOUNTS)
    assert (found.name, found.locks, found.durable, found.links) == (name, locks, durable, links)
    assert found.known
    assert bool(found.note) == (not found.sound), "a reason is given where something is amiss"


def test_a_kind_that_is_not_known_is_no_reason_to_warn() -> None:
    assert kind_of("/new/project", table=MOUNTS).name == "newfs"
    for found in (kind_of("/new/project", table=MOUNTS), kind_of("/anywhere", table="")):
        assert not found.known
        assert found.sound
    assert kind_of("/anywhere", table="").name == UNKNOWN
    assert not set(SOUND) & set(UNSOUND)


def test_the_table_of_this_machine_is_read(tmp_path: Path) -> None:
    """A file that is not there yet lies where its folder does; a link leads where it points to."""
    here = kind_of(str(tmp_path))
    assert kind_of(str(tmp_path / "not" / "there")) == here
    if Path("/proc/self/mountinfo").exists():
        assert here.name != UNKNOWN
        (tmp_path / "link").symlink_to("/proc")
        assert kind_of(str(tmp_path / "link" / "self")).name == "proc"
