/// The keys of the benches for benchs/torch_topk.py, which opens this as a
/// library, so that torch gets the same keys as everyone else.

#include <exception>
#include <string>

#include "benchs/common/StructuredKeys.h"
#include "benchs/common/VectorFile.h"

namespace faiss_bits::bench {
namespace {

thread_local std::string problem;

/// The vectors of the file that was asked for last.
const VectorFile& vectorsOf(const std::string& path) {
    static VectorFile file;
    static std::string last;
    if (path != last) {
        file.read(path);
        last = path;
    }
    return file;
}

/// What `work` throws as a text that stays until the thread's next call, or
/// nullptr.
template <class Work>
const char* problemOf(Work&& work) {
    try {
        work();
        return nullptr;
    } catch (const std::exception& error) {
        problem = error.what();
        return problem.c_str();
    }
}

void fillAnyKeys(void* keys, const KeyRecipe& recipe, const char* sift) {
    const auto [order, type, rows, cols, k, largest, seed, sample] = recipe;
    if (order == Order::Sift) {
        vectorsOf(sift).fill(keys, type, rows, cols);
    } else if (order == Order::SiftClustered) {
        vectorsOf(sift).fillClustered(keys, type, rows, cols, seed);
    } else {
        fillKeys(keys, recipe);
    }
}

} // namespace
} // namespace faiss_bits::bench

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
    return problemOf([&] {
        KeyRecipe recipe;
        recipe.order = orderOf(order);
        recipe.type = dataTypeOf(dtype);
        recipe.rows = rows;
        recipe.cols = cols;
        recipe.seed = seed;
        fillAnyKeys(keys, recipe, sift);
    });
}

/// The same for rivals in bench_select_sweep: the keys of the cell, negated
/// where it asks for the largest. `sample...` as in SampleLayout.
extern "C" __attribute__((visibility("default"))) const char* fillSweepKeys(
        void* keys,
        const char* dtype,
        int64_t rows,
        int64_t cols,
        int k,
        int largest,
        const char* order,
        uint64_t seed,
        int sampleThreads,
        int samplePlaces,
        int sampleParts,
        const char* sift) {
    using namespace faiss_bits::bench;
    return problemOf([&] {
        const KeyRecipe recipe{
                orderOf(order),
                dataTypeOf(dtype),
                rows,
                cols,
                k,
                largest != 0,
                seed,
                {sampleThreads, samplePlaces, uint32_t(sampleParts)}};
        fillAnyKeys(keys, recipe, sift);
        if (recipe.largest) {
            negateKeys(keys, recipe.type, rows * cols);
        }
    });
}
