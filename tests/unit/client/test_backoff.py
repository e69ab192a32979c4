import random

from koikoi_sdk.client.backoff import Backoff


def test_delays_grow_with_jitter_up_to_the_limit_and_begin_anew() -> None:
    backoff = Backoff(base_s=0.2, limit_s=10.0, _random=random.Random(1))
    delays = [backoff.next_delay_s() for _ in range(40)]
    assert all(0.1 <= delay <= min(10.0, 0.2 * 2**n) + 0.1 for n, delay in enumerate(delays))
    assert max(delays[:3]) < 1.0 < max(delays[5:])
    assert len(set(delays)) == 40
    backoff.reset()
    assert backoff.next_delay_s() <= 0.3


def test_never_less_than_the_server_asks_for() -> None:
    backoff = Backoff()
    assert backoff.next_delay_s(5.0) == 5.0
    assert 0.1 <= backoff.next_delay_s(0.0) <= 0.5


def test_failures_without_end_do_not_overflow() -> None:
    backoff = Backoff(failures=10**6)
    assert backoff.next_delay_s() <= 10.1
