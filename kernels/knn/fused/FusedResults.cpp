#include "kernels/knn/fused/FusedResults.h"

#include <algorithm>

#include "kernels/knn/fused/FusedCost.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

void writeFusedResults(
        const FusedPlan& plan,
        const FlatKnnProblem& problem,
        const FusedScratch& scratch,
        const CertifiedParams& params,
        cudaStream_t stream) {
    SurvivorList list;
    list.rows = params.rows;
    list.capacity = plan.capacity;
    list.entries = params.entries;
    list.counts = scratch.counts;
    list.columns = problem.numVectors;
    // Limits of a sample let more pass of some queries.
    constexpr double kMore = 1.5;
    list.usual = idx_t(kMore * passingVectors(plan, problem));
    if (list.usual > 0) {
        list.usual = std::max<idx_t>(list.usual, problem.k);
    }
    SurvivorOutput output;
    output.k = problem.k;
    output.largest = isSimilarity(problem.metric);
    output.dropNan = true;
    output.idType = problem.idType;
    output.outKeys = params.outDistances;
    output.outIds = params.outIds;
    output.complete = scratch.complete;
    output.flags = params.flags;
    output.device = problem.device;
    runSurvivors(list, output, nullptr, {}, stream);
}

} // namespace faiss_bits
