/// fillKeys for benchs/torch_topk.py, which opens this as a library, so that
/// torch gets the same keys as everyone else.

#include <exception>
#include <string>

#include "benchs/common/Keys.h"

namespace {

thread_local std::string problem;

} // namespace

/// Fills keys [rows, cols] on the current device and waits. `sift` is the path
/// of the vectors for the order of that name, else ignored. Returns nullptr, or
/// what went wrong (valid until the thread's next call).
extern "C" __attribute__((visibility("default"))) const char* fillBenchKeys(
        void* keys,
        const char* dtype,
        int64_t rows,
        int64_t cols,
        const char* order,
        uint64_t seed,
        const char* sift) {
    using namespace faiss_bits::bench;
    try {
        if (orderOf(order) == Order::Sift) {
            VectorFile file;
            file.read(sift);
            file.fill(keys, dataTypeOf(dtype), rows, cols);
        } else {
            fillKeys(keys, dataTypeOf(dtype), rows, cols, orderOf(order), seed);
        }
        return nullptr;
    } catch (const std::exception& error) {
        problem = error.what();
        return problem.c_str();
    }
}
