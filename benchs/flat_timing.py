"""Times of searches of torch tensors: medians of warm runs with a cold L2."""

import statistics
import time

import torch

#: Calls before the first that counts: an index of ours makes its 16-bit copy
#: at the fifth small search.
WARM_UP = 5
#: The GPU is kept busy for about 0.1 ms before each call, so that what Python
#: does before the first kernel of it is not timed.
BUSY_CLOCKS = 200_000


def repeats_for(ms, total_ms=60.0):
    """As benchs/common/Timing.cpp, for calls of about total_ms together."""
    if ms > 300:
        return 1
    least = 7 if total_ms >= 60 else 3
    return 3 if ms > 100 else min(51, max(least, int(total_ms / ms)))


def still_works(device):
    """Raises what the device has to say, if an error has made it useless."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


class Clock:
    """Times calls on torch's current stream of a device; wall clock on the
    CPU."""

    def __init__(self, device):
        self.on_gpu = torch.device(device).type == "cuda"
        if self.on_gpu:
            properties = torch.cuda.get_device_properties(device)
            cache = getattr(properties, "L2_cache_size", 1 << 26)
            self.flush = torch.empty(
                3 * cache, dtype=torch.uint8, device=device)

    def once(self, call):
        """Milliseconds of one call, on a cold L2."""
        if not self.on_gpu:
            begin = time.perf_counter()
            call()
            return 1e3 * (time.perf_counter() - begin)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self.flush.zero_()
        torch.cuda._sleep(BUSY_CLOCKS)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def median(self, call, total_ms=60.0):
        """(median ms, calls that it is of) after warming up. Where one call
        takes more than 1 s, the second is the measurement."""
        self.once(call)
        ms = self.once(call)
        if ms > 1000:
            return ms, 1
        spent = ms
        for _ in range(WARM_UP - 2):
            if spent > total_ms:
                break
            ms = self.once(call)
            spent += ms
        times = [self.once(call) for _ in range(repeats_for(ms, total_ms))]
        return statistics.median(times), len(times)
