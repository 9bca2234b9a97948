#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "kernels/common/Types.h"
#include "kernels/cpu/KernelTypes.h"

namespace faiss_bits::cpu {

namespace detail {

/// The loop of the functions below: body(i, thread) for i = nextOf(thread)
/// until that is below 0.
template <class NextOf, class Body>
void runInParallel(
        int team,
        int workers,
        const NextOf& nextOf,
        const Body& body) {
    std::exception_ptr error;
    std::atomic<bool> failed{false};
#pragma omp parallel num_threads(team)
    {
        const int thread = omp_get_thread_num();
        while (thread < workers && !failed.load(std::memory_order_relaxed)) {
            const idx_t i = nextOf(thread);
            if (i < 0) {
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

} // namespace detail

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
    std::atomic<idx_t> next{0};
    const auto nextOf = [&](int) {
        const idx_t i = next.fetch_add(1, std::memory_order_relaxed);
        return i < count ? i : -1;
    };
    detail::runInParallel(team, workers, nextOf, body);
}

/// body(i, thread) for every i of 0 .. workers - 1, once: thread i begins with
/// i, as in every search, so that its caches may hold what it reads. Which
/// thread has the others' that are late is not said.
template <class Body>
void parallelForOwn(int team, int workers, const Body& body) {
    if (workers <= 1) {
        return body(0, 0);
    }
    std::vector<std::atomic<bool>> taken(workers);
    const auto nextOf = [&](int thread) -> idx_t {
        for (int j = 0; j < workers; ++j) {
            std::atomic<bool>& each = taken[(thread + j) % workers];
            if (!each.load(std::memory_order_relaxed) &&
                !each.exchange(true, std::memory_order_relaxed)) {
                return (thread + j) % workers;
            }
        }
        return -1;
    };
    detail::runInParallel(team, workers, nextOf, body);
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
