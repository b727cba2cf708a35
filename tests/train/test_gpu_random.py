"""On a GPU: captured random numbers are those drawn without graphs, whatever streams do."""

from __future__ import annotations

import pytest
import torch

from cule.train.plan.graphs import CudaStreams

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda", 0)
SHORT, LONG = 20_000_000, 100_000_000  # cycles of a GPU: about 10 and 50 ms


@pytest.fixture
def numbers():
    """Two draws of 8 numbers, without graphs; afterwards the generator is where it was before."""
    torch.manual_seed(3)
    torch.rand(8, device=GPU)  # so that the generator's offset is not 0
    state = torch.cuda.get_rng_state(GPU)
    drawn = [torch.rand(8, device=GPU) for _ in range(2)]
    torch.cuda.set_rng_state(state, GPU)
    return drawn


def drawing(to, wait=0):
    """A function that draws into a tensor after so many cycles."""

    def function():
        if wait:
            torch.cuda._sleep(wait)
        to.copy_(torch.rand(8, device=GPU))

    return function


def test_a_capture_ends_before_its_graph_draws(numbers, monkeypatch):
    """The stream of the capture is late, as streams may be on a GPU that others use, too."""
    streams, drawn, made = CudaStreams(GPU, 0), torch.zeros(8, device=GPU), []
    make, synchronize = streams.main, torch.cuda.synchronize

    def main():
        made.append(make())
        return made[-1]

    def late(*arguments):
        synchronize(*arguments)
        if made:
            with torch.cuda.stream(made[-1]):
                torch.cuda._sleep(SHORT)

    monkeypatch.setattr(streams, "main", main)
    monkeypatch.setattr(torch.cuda, "synchronize", late)
    streams.capture(drawing(drawn, LONG))()
    synchronize()
    assert len(made) == 1
    assert torch.equal(drawn, numbers[0])


def test_graphs_that_draw_on_two_streams_do_so_in_the_order_of_their_replays(numbers):
    streams, drawn = CudaStreams(GPU, 1), [torch.zeros(8, device=GPU) for _ in range(2)]
    first = streams.capture(drawing(drawn[0], LONG))
    with streams.on(1):
        second = streams.capture(drawing(drawn[1]))
    torch.cuda.synchronize()
    first()
    with streams.on(1):
        second()
    torch.cuda.synchronize()
    assert torch.equal(drawn[0], numbers[0])
    assert torch.equal(drawn[1], numbers[1])


def test_graphs_that_draw_nothing_wait_for_none_that_does(numbers):
    streams, some, drawn = (
        CudaStreams(GPU, 1),
        torch.ones(8, device=GPU),
        torch.zeros(8, device=GPU),
    )
    with streams.on(1):
        plain = streams.capture(lambda: some.mul_(2))
        plain()  # after which it is known to draw nothing
    first = streams.capture(drawing(drawn, LONG))
    torch.cuda.synchronize()
    first()
    after = torch.cuda.current_stream(GPU).record_event()
    with streams.on(1):
        plain()
        torch.cuda.current_stream(GPU).synchronize()
    assert not after.query()
    assert some.tolist() == [4.0] * 8
    torch.cuda.synchronize()
    assert torch.equal(drawn, numbers[0])
