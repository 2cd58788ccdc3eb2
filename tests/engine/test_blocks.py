"""Which blocks stay in memory, and which go first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.blocks import OPENING, Blocks
from penstock.engine.instructions import Cool
from penstock.model import Block

MB = 2**20


def held(*blocks: tuple[int, int]) -> Blocks:
    """Hot blocks of so many bytes, each with so many readers."""
    spool = Blocks(retention=3600.0)
    for number, (size, readers) in enumerate(blocks):
        block = Block("s", number, 100, size, 0.0)
        spool.hold(block)
        for _ in range(readers):
            spool.take(block)
        spool.warm("s", number)
    return spool


def cooled(spool: Blocks, spare: int) -> list[int]:
    return [order.number for order in spool.cool(spare) if isinstance(order, Cool)]


def test_what_fewer_will_read_again_goes_first() -> None:
    assert cooled(held((10 * MB, 3), (10 * MB, 1), (10 * MB, 2)), 20 * MB) == [1, 2]


def test_of_blocks_with_as_many_readers_the_larger_goes_first() -> None:
    assert cooled(held((MB, 2), (9 * MB, 2), (5 * MB, 2)), 10 * MB) == [1, 2]


def test_many_small_reads_cost_more_than_one_large_one() -> None:
    assert cooled(held((MB, 1), (40 * MB, 2)), MB) == [1], "to open a file costs as much as 4 MB"


def test_nothing_is_let_go_while_there_is_room() -> None:
    assert cooled(held((MB, 1)), 0) == []


@given(st.lists(st.tuples(st.integers(1, 50 * MB), st.integers(1, 9)), min_size=1, max_size=12),
       st.floats(0, 1))
def test_what_is_let_go_costs_least_to_read_again_and_is_no_more_than_needed(
    blocks: list[tuple[int, int]], share: float
) -> None:
    spool = held(*blocks)
    spare = int(share * spool.hot_bytes)
    gone = cooled(spool, spare)
    cost = [readers * (OPENING + size) / size for size, readers in blocks]
    left = [number for number in range(len(blocks)) if number not in gone]
    assert max((cost[n] for n in gone), default=0) <= min((cost[n] for n in left), default=1e18)
    assert sum(blocks[n][0] for n in gone) >= spare
    assert sum(blocks[n][0] for n in gone[:-1]) < max(spare, 1)
    assert spool.hot_bytes == sum(blocks[n][0] for n in left)


def test_a_block_is_not_worth_its_memory_once_all_go_on_with_what_they_kept_of_it() -> None:
    spool = held((MB, 2))
    block = spool.find("s", 0)
    assert block is not None
    spool.keep_part(block)
    assert list(spool.release(0.0)) == []
    spool.keep_part(block)
    assert list(spool.release(0.0)) == [Cool(stream="s", number=0)]
    assert list(spool.release(1e9)) == [], "its parts could not be computed again"
    spool.let_go(block, part=True)
    spool.let_go(block, part=True)
    assert [type(order).__name__ for order in spool.release(1e9)] == ["Release"]


def test_a_block_that_was_let_go_and_is_wanted_again_stays_for_its_parts() -> None:
    spool = held((MB, 1))
    block = spool.find("s", 0)
    assert block is not None
    spool.let_go(block)  # now it grows old
    spool.take(block)
    spool.keep_part(block)
    assert list(spool.release(1e9)) == [Cool(stream="s", number=0)]
