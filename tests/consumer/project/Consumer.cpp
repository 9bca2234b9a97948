/// Uses an installed faiss_bits: an exact index of the CPU part, the kernels
/// below it, and what the library says about itself.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <faiss_bits/Version.h>
#include <faiss_bits/flat/BestFlatIndex.h>
#include <kernels/cpu/Knn.h>
#include <kernels/cpu/Machine.h>
#include <kernels/cpu/Range.h>
#include <kernels/cpu/Targets.h>

#ifdef CONSUMER_HAS_GPU
#include <faiss_bits/flat/GpuIndexBitsFlat.h>

bool planSelection();
#endif

namespace {

/// The vector of the smallest angle, by the kernels alone.
bool findsByCosine() {
    const std::vector<double> vectors = {0, 1, 3, 3};
    const std::vector<double> query = {2, 1};
    double cosine = 0;
    faiss_bits::idx_t id = -1;

    faiss_bits::cpu::KnnProblem<double> problem;
    problem.metric = faiss_bits::Metric::Cosine;
    problem.numQueries = 1;
    problem.numVectors = 2;
    problem.d = 2;
    problem.k = 1;
    problem.queries = query.data();
    problem.vectors = vectors.data();
    problem.choice.target = faiss_bits::cpu::targetNames().front();
    problem.outDistances = &cosine;
    problem.outIds = &id;
    faiss_bits::cpu::runKnn(problem);
    const auto all = faiss_bits::cpu::runRange<double>(problem, 0.0);
    return id == 1 && cosine > 0.9 && all.ids.size() == 2 &&
            faiss_bits::cpu::thisMachine().lanes >= 1;
}

} // namespace

int main() {
    const std::vector<float> vectors = {0, 0, 3, 4, 1, 1};
    const std::vector<float> query = {1, 2};
    std::vector<float> distances(2);
    std::vector<std::int64_t> labels(2);

    auto index = faiss_bits::bestFlatIndex(2);
    index->add(3, vectors.data());
    index->search(1, query.data(), 2, distances.data(), labels.data());
    const bool found = labels[0] == 2 && labels[1] == 0 && distances[0] == 1 &&
            distances[1] == 5 && findsByCosine();

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
