#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/OrderedEntry.h"
#include "kernels/cpu/ivf/IvfKnn.h"

namespace faiss_bits::cpu {

/// Where a vector is.
struct IvfPlace {
    idx_t list, place;
};

/// Of results with equal keys: what orders them, and what is written.
struct IvfTied {
    idx_t id, label;
};

/// What a result calls a vector.
inline idx_t ivfLabelOf(const IvfKnnProblem& problem, IvfPlace at) {
    return problem.givePlaces ? at.list << 32 | at.place
                              : problem.lists->id(at.list, at.place);
}

/// Row `query` of the results, of entries that are sorted by key;
/// placeOf(entry) says which vector it is. Equal keys are put in the order of
/// their ids; NaN, which comes last, is no result.
template <class PlaceOf>
void writeIvfRow(
        const IvfKnnProblem& problem,
        idx_t query,
        const OrderedEntry<float>* sorted,
        idx_t count,
        std::vector<IvfTied>& tied,
        const PlaceOf& placeOf) {
    const bool similarity = isSimilarity(problem.metric);
    const idx_t k = problem.k;
    float* distances = problem.outDistances + query * k;
    idx_t* ids = problem.outIds + query * k;
    while (count > 0 && std::isnan(sorted[count - 1].key())) {
        --count;
    }
    idx_t done = 0;
    while (done < std::min(count, k)) {
        const float key = sorted[done].key();
        idx_t end = done + 1;
        while (end < count && sorted[end].key() == key) {
            ++end;
        }
        const idx_t last = std::min(end, k);
        std::fill(
                distances + done,
                distances + last,
                similarity ? 0.f - key : key);
        if (end == done + 1) {
            ids[done] = ivfLabelOf(problem, placeOf(sorted[done]));
        } else {
            tied.clear();
            for (idx_t i = done; i < end; ++i) {
                const IvfPlace at = placeOf(sorted[i]);
                tied.push_back(
                        {problem.lists->id(at.list, at.place),
                         ivfLabelOf(problem, at)});
            }
            std::stable_sort(
                    tied.begin(),
                    tied.end(),
                    [](const IvfTied& a, const IvfTied& b) {
                        return a.id < b.id;
                    });
            for (idx_t i = done; i < last; ++i) {
                ids[i] = tied[i - done].label;
            }
        }
        done = last;
    }
    constexpr float kMax = std::numeric_limits<float>::max();
    std::fill(distances + done, distances + k, similarity ? -kMax : kMax);
    std::fill(ids + done, ids + k, idx_t(-1));
}

} // namespace faiss_bits::cpu
