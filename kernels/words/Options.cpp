#include "kernels/words/Options.h"

#include <omp.h>

#include <algorithm>
#include <chrono>

#include "kernels/cpu/ParallelFor.h"

namespace faiss_bits::words {

int WordOptions::team() const {
    return std::max(omp_get_max_threads(), threads);
}

int WordOptions::workers() const {
    return threads > 0 ? threads : omp_get_max_threads();
}

void forAll(
        const WordOptions& options,
        int64_t count,
        const std::function<void(int64_t, int)>& body) {
    using Clock = std::chrono::steady_clock;
    const int workers = options.workers();
    // As many as take about 20 ms, found by doubling.
    int64_t round = options.interrupt ? workers : count;
    for (int64_t begin = 0; begin < count;) {
        const int64_t now = std::min(round, count - begin);
        const auto start = Clock::now();
        faiss_bits::cpu::parallelFor(
                options.team(), workers, now, [&](int64_t i, int thread) {
                    body(begin + i, thread);
                });
        begin += now;
        if (options.interrupt) {
            options.interrupt();
            if (Clock::now() - start < std::chrono::milliseconds(10)) {
                round *= 2;
            }
        }
    }
}

} // namespace faiss_bits::words
