"""Figures 5 to 9: response times over window distributions, bursts and skewed queries."""

from __future__ import annotations

import numpy as np

from experiments.joins.runs import LWO, MQT, POLICIES, SWF, Size, Sweep
from experiments.joins.telling import Telling, each
from experiments.joins.workload import DISTRIBUTIONS, LOAD, streams
from penstock.report.figures import Drawing
from penstock.simulator.joins import Method

SECONDS = "mean response, s"
SKEWED = "Small-Large"
"""The distribution of the burst and skew experiments."""


def distributions(size: Size, method: Method = "hash") -> Sweep:
    """Figs 5 and 6: one query per window, four distributions."""
    loads = tuple(streams(name, size.outers, method=method) for name in DISTRIBUTIONS)
    return Sweep("distribution", tuple(DISTRIBUTIONS), loads, size.seeds)


def bursts(size: Size) -> Sweep:
    """Figs 7 and 8: more and more rows come together."""
    loads = tuple(streams(SKEWED, size.outers, burst=burst) for burst in size.bursts)
    return Sweep("mean burst", tuple(f"{burst:g}" for burst in size.bursts), loads, size.seeds)


def skews(size: Size) -> Sweep:
    """Fig. 9: of thirty queries 24 have one window, and one each of six has another."""
    loads = tuple(streams(SKEWED, size.outers, tuple(24 if n == at else 1 for n in range(7)))
                  for at in range(7))
    return Sweep("24 of 30 queries at", tuple(f"w{n}" for n in range(1, 8)), loads, size.seeds)


def loads(size: Size) -> Sweep:
    """A machine that is more or less busy, which the paper does not state."""
    made = tuple(streams(SKEWED, size.outers, load=load) for load in size.loads)
    return Sweep("load", tuple(f"{load:g}" for load in size.loads), made, size.seeds)


def tell_distributions(telling: Telling, sweep: Sweep, nested: Sweep) -> None:
    """Figs 5 and 6, and what the paper says of them."""
    for found, id, given in ((sweep, "", ""), (nested, "-nested", " (nested loops)")):
        means = telling.means(found)
        _mqt_is_lowest(telling, f"mqt-lowest{id}", f"in all four distributions{given}", found)
        below = means[SWF] < means[LWO]
        telling.check(
            f"swf-small{id}", f"SWF is below LWO only where small windows dominate{given}",
            "below in Mostly-Small, above in the others",
            f"{each(found, means[SWF] / means[LWO])} times LWO's",
            list(below) == [name == "Mostly-Small" for name in found.x])
        telling.rows(f"fig5{id}", "distribution", found.x, means)
    places = tuple(range(1, 5))
    telling.figure(
        "fig5", Drawing("Fig. 5: mean response, the mean over the queries",
                        "Uniform, Mostly-Small, Mostly-Large, Small-Large", SECONDS, marks=True),
        {name: (places, telling.mean(sweep, name)) for name in POLICIES},
        "Seven queries, one per window, hash join, 100 rows a second in each stream.",
        ("mqt-lowest", "swf-small"))
    telling.rows("per-pair", "distribution", sweep.x, telling.means(sweep, "per_pair"))
    for place, name in enumerate(sweep.x[:2]):
        _by_window(telling, f"fig6{'ab'[place]}", f"Fig. 6: {name}", sweep, place)
    rising = telling.mean(sweep, LWO, "means")[0]
    telling.check("lwo-flat", "LWO's response is about the same for all windows (Uniform)",
                  "the largest at most twice the smallest", f"{rising.max() / rising.min():.2f}",
                  bool(rising.max() <= 2 * rising.min()))
    _tell_largest(telling, sweep)
    ours, theirs = (telling.mean(sweep, name, "longest")[:, -1] for name in (MQT, SWF))
    telling.check("mqt-max", "MQT's longest response is below SWF's for the largest window",
                  "in all four distributions", f"{each(sweep, ours / theirs)} times SWF's",
                  bool((ours < theirs).all()))


def _tell_largest(telling: Telling, sweep: Sweep) -> None:
    """Fig. 6, on SWF and MQT in Uniform and Mostly-Small."""
    swf, mqt = (telling.mean(sweep, name, "means") for name in (SWF, MQT))
    ratio = mqt[0] / swf[0]
    telling.check("mqt-like-swf", "MQT is similar to SWF for all windows but the largest (Uniform)",
                  "half to twice SWF's for w1 to w6, less than any of these for w7",
                  f"{', '.join(f'{one:.2f}' for one in ratio)} times SWF's",
                  bool(((0.5 <= ratio) & (ratio <= 2))[:6].all() and ratio[6] == ratio.min()))
    half = swf[1][-1] / swf[0][-1]
    telling.check("swf-half", "SWF's largest window responds twice as fast in Mostly-Small as in "
                  "Uniform", "0.4 to 0.6 times", f"{half:.2f} times", 0.4 <= half <= 0.6)


def _mqt_is_lowest(telling: Telling, id: str, where: str, sweep: Sweep) -> None:
    means = telling.means(sweep)
    lead = means[MQT] / np.minimum(means[LWO], means[SWF])
    telling.check(id, f"MQT has the lowest mean response {where}", "below both others everywhere",
                  f"{each(sweep, lead)} times the better of LWO and SWF", bool((lead < 1).all()))


def _by_window(telling: Telling, id: str, title: str, sweep: Sweep, place: int) -> None:
    lengths = sweep.loads[place].windows
    for what, word in (("means", "mean"), ("longest", "longest")):
        found = {name: telling.mean(sweep, name, what)[place] for name in POLICIES}
        telling.figure(
            f"{id}-{word}", Drawing(f"{title}, {word} response by window", "window, s",
                                    f"{word} response, s", marks=True, log_x=True, log_y=True),
            {name: (lengths, found[name]) for name in POLICIES}, "")
        telling.rows(f"{id}-{word}", "window", [f"{length:g} s" for length in lengths], found)


def tell_bursts(telling: Telling, sweep: Sweep) -> None:
    """Figs 7 and 8."""
    means = telling.means(sweep)
    sizes = [float(x) for x in sweep.x]
    telling.figure("fig7", Drawing("Fig. 7: bursts, Small-Large windows", "rows in a burst, mean",
                                   SECONDS, marks=True),
                   {name: (sizes, means[name]) for name in POLICIES}, "",
                   ("mqt-bursts", "gain-lwo", "gain-swf"))
    telling.rows("fig7", "burst", sweep.x, means)
    _by_window(telling, "fig8", f"Fig. 8: bursts of {sweep.x[-1]}", sweep, len(sweep.x) - 1)
    _mqt_is_lowest(telling, "mqt-bursts", "at every burst size", sweep)
    swf, mqt = (telling.mean(sweep, name, "means")[-1, -1] for name in (SWF, MQT))
    telling.check("burst-largest", "under bursts of 5 the largest window takes SWF 4 s and MQT at "
                  "most 1 s", "MQT's a quarter of SWF's or less",
                  f"{swf:.2f} s and {mqt:.2f} s, {mqt / swf:.2f} times", mqt <= swf / 4)
    for rival, printed in ((LWO, 0.6), (SWF, 0.3)):
        gain = 1 - means[MQT] / means[rival]
        telling.check(f"gain-{rival}", f"MQT's gain over {rival.upper()} under bursts reaches "
                      f"about {printed:.0%}", f"at least {printed - 0.1:.0%} at some burst size",
                      f"{each(sweep, gain)}", bool(gain.max() >= printed - 0.1))


def tell_skews(telling: Telling, sweep: Sweep) -> None:
    """Fig. 9."""
    means = telling.means(sweep)
    telling.figure("fig9", Drawing("Fig. 9: 80 % of thirty queries at one window", "window number",
                                   SECONDS, marks=True),
                   {name: (range(1, 8), means[name]) for name in POLICIES}, "",
                   ("mqt-skews", "skew-small", "skew-large"))
    telling.rows("fig9", "most at", sweep.x, means)
    _mqt_is_lowest(telling, "mqt-skews", "wherever 80 % of the queries are", sweep)
    ratio = means[SWF] / means[LWO]
    telling.check("skew-small", "SWF is better than LWO when most queries have a small window",
                  "below LWO at w1, w2 and w3", each(sweep, ratio), bool((ratio[:3] < 1).all()))
    telling.check("skew-large", "LWO is better than SWF when most queries have a large window",
                  "below SWF at w6 and w7", each(sweep, ratio), bool((ratio[5:] > 1).all()))


def tell_loads(telling: Telling, sweep: Sweep) -> None:
    """How much the claims rest on the load that was chosen."""
    means = telling.means(sweep)
    telling.figure("loads", Drawing("Small-Large windows on a machine more or less busy",
                                    "part of its time that LWO needs", SECONDS, marks=True,
                                    log_y=True),
                   {name: ([float(x) for x in sweep.x], means[name]) for name in POLICIES},
                   "The paper does not say how busy its machine was; the other figures have "
                   f"{LOAD}.",
                   ("mqt-loads",))
    telling.rows("loads", "load", sweep.x, means)
    _mqt_is_lowest(telling, "mqt-loads", "at every load", sweep)


def tell_memory(telling: Telling, hashed: Sweep, bursts: Sweep) -> None:
    """Section 5.4: what SWF and MQT hold beside the join buffers."""
    def most(name: str, what: str, *sweeps: Sweep) -> float:
        return max(sweep.most(telling.runs, name, what) for sweep in sweeps)

    both = hashed, bursts
    for name in (SWF, MQT):
        waiting, held = most(name, "waiting", *both), most(name, "held", *both)
        telling.check(f"waiting-{name}", f"{name.upper()}'s rows that wait are few beside the "
                      "window", "below 20 % of the join buffers", f"{waiting:.1%}", waiting < 0.2)
        telling.check(f"held-{name}", f"{name.upper()}'s pairs that are held back are few beside "
                      "the window", "below 3 % of the join buffers", f"{held:.1%}", held < 0.03)
    rows = most(SWF, "held_rows", *both)
    telling.check("held-rows", "the rows whose pairs SWF holds back are few beside the window, "
                  "whatever comes", "below 3 % of the join buffers", f"{rows:.1%}", rows < 0.03)
    sizes = [float(x) for x in bursts.x]
    telling.figure(
        "memory", Drawing("What waits and what is held back, Small-Large", "rows in a burst, mean",
                          "part of the join buffers", marks=True, log_y=True),
        {f"{name}, {word}": (sizes, telling.mean(bursts, name, what)) for name in (SWF, MQT)
         for what, word in (("waiting", "rows that wait"), ("held", "pairs held back"))},
        "The most at any time of a run.", ("waiting-swf", "held-swf", "waiting-mqt", "held-mqt"))
    telling.rows("memory", "policy", POLICIES, {
        what: [most(name, what, *both) for name in POLICIES]
        for what in ("waiting", "held", "held_rows")})
