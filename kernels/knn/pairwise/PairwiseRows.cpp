#include "kernels/knn/pairwise/PairwiseRows.h"

namespace faiss_bits {

namespace {

/// `count` rows from `first` on, of `all` in the matrix.
PairwiseRows rowsOf(
        const void* data,
        DataType type,
        bool rowMajor,
        idx_t all,
        int d,
        idx_t first,
        idx_t count,
        const float* facts) {
    PairwiseRows rows;
    const size_t size = sizeOf(type);
    rows.rowStride = rowMajor ? d : 1;
    rows.columnStride = rowMajor ? 1 : all;
    rows.data = static_cast<const uint8_t*>(data) +
            size_t(first) * rows.rowStride * size;
    rows.count = count;
    rows.facts = facts ? facts + first : nullptr;
    rows.type = type;
    rows.quads = rowMajor && d % 4 == 0 &&
            reinterpret_cast<uintptr_t>(data) % (4 * size) == 0;
    return rows;
}

} // namespace

PairwiseRows pairwiseRows(
        const void* data,
        DataType type,
        bool rowMajor,
        idx_t count,
        int d,
        const float* facts) {
    return rowsOf(data, type, rowMajor, count, d, 0, count, facts);
}

PairwiseParams pairwiseParams(
        const FlatKnnProblem& problem,
        const RowFactsOf& facts,
        const DistanceTile& tile,
        float* values,
        idx_t stride) {
    const FlatKnnProblem& p = problem;
    PairwiseParams params;
    params.vectors =
            rowsOf(p.vectors,
                   p.dataType,
                   p.vectorsRowMajor,
                   p.numVectors,
                   p.d,
                   tile.firstVector,
                   tile.numVectors,
                   facts.vectors);
    // As they came, where they were rounded for the products of others.
    params.queries =
            rowsOf(p.exactQueries ? p.exactQueries : p.queries,
                   p.exactQueries ? DataType::Float32 : p.dataType,
                   p.exactQueries || p.queriesRowMajor,
                   p.numQueries,
                   p.d,
                   tile.firstQuery,
                   tile.numQueries,
                   facts.queries);
    params.distances = values;
    params.distanceStride = stride;
    params.d = p.d;
    params.power = p.metricArg;
    params.quadStores =
            stride % 4 == 0 && reinterpret_cast<uintptr_t>(values) % 16 == 0;
    return params;
}

} // namespace faiss_bits
