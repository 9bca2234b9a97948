/// Uses an installed faiss_bits: an exact index of the CPU part, and what the
/// library says about itself.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <faiss_bits/Version.h>
#include <faiss_bits/flat/BestFlatIndex.h>

#ifdef CONSUMER_HAS_GPU
#include <faiss_bits/flat/GpuIndexBitsFlat.h>

bool planSelection();
#endif

int main() {
    const std::vector<float> vectors = {0, 0, 3, 4, 1, 1};
    const std::vector<float> query = {1, 2};
    std::vector<float> distances(2);
    std::vector<std::int64_t> labels(2);

    auto index = faiss_bits::bestFlatIndex(2);
    index->add(3, vectors.data());
    index->search(1, query.data(), 2, distances.data(), labels.data());
    const bool found = labels[0] == 2 && labels[1] == 0 && distances[0] == 1 &&
            distances[1] == 5;

    bool planned = true;
#ifdef CONSUMER_HAS_GPU
    planned = planSelection();
    if (!faiss_bits::hasGpuPart()) {
        planned = false;
    }
#endif

    std::printf(
            "faiss_bits %s, GPU part: %s, nearest: %s, kernels: %s\n",
            faiss_bits::version(),
            faiss_bits::hasGpuPart() ? "yes" : "no",
            found ? "right" : "WRONG",
            planned ? "right" : "WRONG");
    return found && planned ? 0 : 1;
}
