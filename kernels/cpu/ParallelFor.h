#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "kernels/common/Types.h"
#include "kernels/cpu/KernelTypes.h"

namespace faiss_bits::cpu {

/// body(i, thread) for every i of 0 .. count - 1, on up to `workers` of the
/// `team` threads that OpenMP is asked for, thread < workers also where the
/// caller is inside a parallel region. The first exception ends the loop and is
/// thrown on the calling thread.
///
/// `team` is that of all loops of a search, and of all searches with the same
/// setting: GCC's OpenMP ends the threads that a smaller team does not need,
/// and starting 14 of them again takes 0.7 ms.
template <class Body>
void parallelFor(int team, int workers, idx_t count, const Body& body) {
    if (workers <= 1 || count <= 1) {
        for (idx_t i = 0; i < count; ++i) {
            body(i, 0);
        }
        return;
    }
    std::exception_ptr error;
    std::atomic<bool> failed{false};
    std::atomic<idx_t> next{0};
#pragma omp parallel num_threads(team)
    {
        const int thread = omp_get_thread_num();
        while (thread < workers && !failed.load(std::memory_order_relaxed)) {
            const idx_t i = next.fetch_add(1, std::memory_order_relaxed);
            if (i >= count) {
                break;
            }
            try {
                body(i, thread);
            } catch (...) {
                if (!failed.exchange(true)) {
                    error = std::current_exception();
                }
            }
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

/// Ends of the blocks that threads take in turn: of `most` rows, and the last
/// of every thread in ever smaller ones, down to a quarter, so that threads
/// that are not equally fast still finish together.
inline std::vector<idx_t> cutRows(
        idx_t rows,
        idx_t most,
        int tile,
        int threads) {
    const idx_t least = roundUp((most + 3) / 4, tile);
    std::vector<idx_t> ends;
    for (idx_t end = 0; end < rows;) {
        const idx_t left = rows - end;
        const idx_t share = threads > 1 && left <= threads * most
                ? std::clamp(roundUp(left / (2 * threads), tile), least, most)
                : most;
        end += std::min(share, left);
        ends.push_back(end);
    }
    return ends;
}

} // namespace faiss_bits::cpu
