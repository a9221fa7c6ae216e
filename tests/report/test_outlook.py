"""Groups, alternatives and the outlook of a plan in words."""

from dataclasses import replace

from glaunch.placement.objective import NO_GROUPS, Groups
from glaunch.placement.placement import Cost
from glaunch.placement.predict import Bandwidth, Crossings, Outlook, Prediction
from glaunch.plan import Later, Moment, Plan, SlurmChoice
from glaunch.report.outlook import groups_words
from glaunch.report.plan import plan_text
from glaunch.report.summary import summary


def prediction(leaf: int, pod: int, bandwidth: Bandwidth | None = None) -> Prediction:
    return Prediction(Crossings(leaf, pod, 8), Crossings(2 * leaf, 2 * pod, 28), bandwidth, ("no other job on the links",))


def test_groups_in_words(plan: Plan) -> None:
    placement = plan.placement
    assert placement is not None
    assert groups_words(NO_GROUPS, placement) == ""
    assert groups_words(Groups(1, 4), placement) == "2 groups of 4 nodes, none over two pods"
    assert groups_words(Groups(2, 2), placement) == "4 groups of 2 nodes, none over two leaves"
    split = replace(placement, cost=replace(placement.cost, pod_splits=1, leaf_splits=2))
    words = (
        "2 groups of 4 nodes, 1 of them over two pods or more, and no set has fewer; "
        "4 groups of 2 nodes, 2 of them over two leaves or more, and no set has fewer"
    )
    assert groups_words(Groups(2, 4), split) == words
    assert words in summary(replace(plan, groups=Groups(2, 4), placement=split))
    assert split.cost.in_words(8).endswith(", 1 group over two pods or more, 2 groups over two leaves or more")


def test_another_objectives_set_is_shown_beside(plan: Plan) -> None:
    assert plan.placement is not None
    other = replace(plan.placement, objective="spread", cost=Cost(8, 100, 1, 5), bound=Cost(8, 100, 1, 5))
    text = " ".join(plan_text(replace(plan, alternatives=(other,))).split())
    assert "or --objective spread has fewer pods: 5 leaves in 1 pod, 3.57 switches between two nodes on average" in text
    ring = replace(plan.placement, objective="ring", bound=replace(plan.placement.cost, ring_hops=10))
    text = " ".join(plan_text(replace(plan, placement=ring)).split())
    assert "12 ring hops, and no set of free nodes has fewer than 10" in text
    proven = replace(ring, bound=ring.cost)
    assert "proven optimal for ring among the nodes that are free" in " ".join(plan_text(replace(plan, placement=proven)).split())


def test_the_outlook_says_only_what_is_known(plan: Plan) -> None:
    plain = Outlook(prediction(2, 0), prediction(6, 0), prediction(2, 0))
    text = " ".join(plan_text(replace(plan, outlook=plain)).split())
    assert "rank order ring: 2 of 8 connections leave a leaf, 0 a pod (in the order of names 6 and 0)" in text
    assert "NCCL's trees: 4 of 28 connections leave a leaf, 0 a pod (in the order of names 12 and 0)" in text
    assert "GB/s" not in text
    fast, slow = Bandwidth(290, 338, 390), Bandwidth(120.2, 169, 200)
    known = Outlook(prediction(2, 0, fast), prediction(6, 0, slow), prediction(2, 0, fast))
    text = " ".join(plan_text(replace(plan, outlook=known)).split())
    assert (
        "all-reduce 338 GB/s (290–390) bus bandwidth; in the order of names 169 GB/s (120–200); "
        "the best set of all 338 GB/s (290–390) a model, right to about a quarter: no other job on the links" in text
    )
    assert plan.placement is not None
    lone = replace(plan.placement, cost=Cost(8, 28, 1, 1), bound=Cost(8, 28, 1, 1))
    assert "rank order" not in plan_text(replace(plan, outlook=known, placement=lone))


def test_a_plan_says_how_old_the_free_nodes_are(plan: Plan) -> None:
    text = " ".join(plan_text(plan, now_s=plan.cluster_taken_at_s + 37).split())
    assert "proven optimal among the nodes that were free 37 s ago" in text
    assert "the nodes that are free" in " ".join(plan_text(plan, now_s=plan.cluster_taken_at_s).split())


def test_moments_of_the_same_pods_and_leaves_are_told_apart(plan: Plan) -> None:
    nodes = tuple(f"n{number:03}" for number in range(1, 7))
    first, second = Moment(1188, nodes, Cost(6, 33, 1, 2)), Moment(2388, nodes, Cost(6, 31, 1, 2))
    text = " ".join(plan_text(replace(plan, later=Later((first, second), 7, 7, 0, ""))).split())
    assert "in ~19 min, if nobody else takes them: 2 leaves in 1 pod, 2.20 switches between two nodes on average" in text
    assert "in ~39 min, if nobody else takes them: 2 leaves in 1 pod, 2.07 switches between two nodes on average" in text
    assert "now: 2 leaves in 1 pod, 2.14 switches" in text
    text = " ".join(plan_text(replace(plan, later=Later((replace(second, cost=Cost(6, 35, 1, 3)),), 7, 7, 0, ""))).split())
    assert "now: 1 pod, 2 leaves; in ~39 min, if nobody else takes them: 1 pod, 3 leaves" in text


def test_a_start_that_nobody_can_foresee_is_no_number_of_days(plan: Plan) -> None:
    def says(in_s: int) -> str:
        choice = SlurmChoice(("n001",), None, 1000 + in_s, "")
        return " ".join(plan_text(replace(plan, slurm_choice=choice), now_s=1000.0).split())

    assert "it would start in ~2 h (Slurm's estimate; changes with the queue)" in says(7200)
    unseen = says(2912 * 86400)
    assert "when it would start Slurm cannot say: jobs without a time limit come first" in unseen
    assert "2912" not in unseen
