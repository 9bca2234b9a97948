#pragma once

#include <omp.h>

#include <atomic>
#include <exception>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// body(i, thread) for every i of 0 .. count - 1, on up to `threads` threads of
/// OpenMP, thread < threads also where the caller is inside a parallel region.
/// The first exception ends the loop and is thrown on the calling thread.
template <class Body>
void parallelFor(int threads, idx_t count, const Body& body) {
    if (threads <= 1 || count <= 1) {
        for (idx_t i = 0; i < count; ++i) {
            body(i, 0);
        }
        return;
    }
    std::exception_ptr error;
    std::atomic<bool> failed{false};
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (idx_t i = 0; i < count; ++i) {
        if (failed.load(std::memory_order_relaxed)) {
            continue;
        }
        try {
            body(i, omp_get_thread_num());
        } catch (...) {
            if (!failed.exchange(true)) {
                error = std::current_exception();
            }
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

} // namespace faiss_bits
