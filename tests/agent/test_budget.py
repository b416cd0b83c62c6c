"""Budgets as a tree: whatever the agents do, leases and what is spent stay within what there is."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.agent.budget import Spent, on_top, rest_of, share_of, within
from croze.agent.limits import Meter
from croze.types.agent import Limits
from croze.types.model import Cost
from croze.types.team import ChildReport, Lease

REQUEST = 0.05
"""US dollars that a request costs at most."""


@dataclass
class Agent:
    """An agent as its caller's budget sees it: it asks before each request whether there is any left."""

    meter: Meter
    above: "Agent | None" = None
    name: str = ""
    children: list["Agent"] = field(default_factory=list)
    made: int = 0

    @property
    def spent(self) -> Spent:
        return self.meter.spent

    def request(self, cost: float) -> None:
        if self.works() and self.meter.exceeded() is None:
            self.meter.steps += 1
            self.meter.spend(Cost(input=cost, output=0.0))

    def works(self) -> bool:
        """An agent that was idle takes a new lease."""
        if self.above is None or self.above.meter.leases.works(self.name):
            return True
        if not self.above.works():
            return False
        lease = share_of(self.above.meter.left(), 1)
        if lease is None:
            return False
        until = on_top(lease, self.spent, 0.0)
        self.meter.limits = Limits(steps=until.steps, cost=until.cost, repeats=10**9)
        self.above.meter.leases.hold(self.name, self, until)
        return True

    def call(self, share: int) -> None:
        if not self.works():
            return
        lease = share_of(self.meter.left(), share)
        if lease is None:
            return
        self.made += 1
        name = f"{self.name}/{self.made}"
        limits = Limits(steps=lease.steps, cost=lease.cost, repeats=10**9)
        child = Agent(Meter(limits, 0.0), self, name)
        self.meter.leases.hold(name, child, lease)
        self.children.append(child)

    def end(self) -> None:
        for child in list(self.children):
            child.end()
        if self.above is not None:
            self.above.children.remove(self)
            spent = self.spent
            report = ChildReport(
                agent="a", session=self.name, ok=True, steps=spent.steps, cost=spent.cost
            )
            self.above.meter.returned(self.name, report)

    def idle(self) -> None:
        if self.above is not None:
            self.above.meter.leases.idle(self.name)

    def everyone(self) -> list["Agent"]:
        return [self, *(each for child in self.children for each in child.everyone())]


def check(agent: Agent) -> None:
    limits, held = agent.meter.limits, agent.meter.leases.held
    working = sum(len(each.everyone()) for each in agent.children)
    spent = agent.spent
    assert limits.steps is not None
    assert spent.steps <= limits.steps
    assert agent.meter.steps + held.steps <= limits.steps
    assert limits.cost is not None
    assert spent.cost is not None
    assert held.cost is not None
    assert agent.meter.cost is not None
    most = limits.cost + REQUEST * (1 + working + agent.made) + 1e-9
    assert spent.cost <= most
    assert agent.meter.cost + held.cost <= most
    for child in agent.children:
        check(child)


ACTIONS = st.tuples(
    st.sampled_from(["request", "call", "call", "end", "idle", "request"]),
    st.integers(0, 20),
    st.integers(1, 4),
    st.floats(0.0, REQUEST),
)


@given(
    steps=st.integers(1, 40),
    cost=st.floats(0.001, 2.0),
    actions=st.lists(ACTIONS, max_size=60),
)
def test_no_tree_of_agents_spends_more_than_its_root_has(
    steps: int, cost: float, actions: list[tuple[str, int, int, float]]
) -> None:
    root = Agent(Meter(Limits(steps=steps, cost=cost, repeats=10**9), 0.0))
    for action, which, share, price in actions:
        everyone = root.everyone()
        agent = everyone[which % len(everyone)]
        match action:
            case "request":
                agent.request(price)
            case "call":
                agent.call(share)
            case "end" if agent is not root:
                agent.end()
            case "idle" if not agent.children:
                agent.idle()
            case _:
                pass
        check(root)
    root.end()
    assert root.spent.steps <= steps
    assert root.meter.leases.held == Spent()


@given(st.integers(2, 1000), st.integers(1, 20))
def test_shares_leave_the_caller_a_step_and_give_each_at_least_one(steps: int, share: int) -> None:
    lease = share_of(Lease(steps=steps), share)
    assert lease is not None
    assert lease.steps is not None
    assert 1 <= lease.steps <= steps - 1


@pytest.mark.parametrize(
    "left", [Lease(steps=1), Lease(steps=0), Lease(cost=0.0), Lease(seconds=0.0)]
)
def test_what_pays_for_no_request_is_not_lent(left: Lease) -> None:
    assert share_of(left, 1) is None


def test_without_limits_nothing_is_limited() -> None:
    assert share_of(Lease(), 7) == Lease()
    assert rest_of(Lease(), Spent(5, 1.0), 3.0) == Lease()


def test_what_follows_one_another_divides_the_time_and_what_works_at_once_does_not() -> None:
    assert share_of(Lease(seconds=100.0), 8, waves=2) == Lease(seconds=45.0)


def test_the_smaller_limit_counts() -> None:
    both = within(Lease(steps=3, cost=1.0), Lease(steps=5, seconds=2.0))
    assert both == Lease(steps=3, cost=1.0, seconds=2.0)


def test_an_unknown_cost_uses_up_what_money_there_was() -> None:
    assert rest_of(Lease(cost=1.0), Spent(1, None), 0.0) == Lease(cost=0.0)
    assert on_top(Lease(cost=1.0), Spent(1, None), 0.0) == Lease(cost=0.0)
    meter = Meter(Limits(cost=1.0), 0.0)
    meter.spend(Cost())
    assert share_of(meter.left(), 1) is None


@given(st.integers(0, 50), st.integers(0, 50), st.floats(0, 10), st.floats(0, 10))
def test_a_new_lease_stands_on_top_of_what_was_used(
    lent: int, used: int, money: float, spent: float
) -> None:
    until = on_top(Lease(steps=lent, cost=money), Spent(used, spent), 0.0)
    rest = rest_of(until, Spent(used, spent), 0.0)
    assert rest.steps == lent
    assert rest.cost == pytest.approx(money)
