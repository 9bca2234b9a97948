/// What no search can have.

#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/parts/PartsKnn.h"

namespace faiss_bits {

void checkFlatKnnShape(const FlatKnnProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.k >= 1, "k = %d is below 1", p.k);
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    // Before numVectors, whose limit a search in parts has from it.
    BITS_THROW_IF_NOT_FMT(
            p.partVectors >= 0 && p.partVectors <= kMostPartVectors &&
                    p.partVectors % 32 == 0,
            "partVectors = %lld is no multiple of 32 in 0..%lld",
            (long long)p.partVectors,
            (long long)kMostPartVectors);
    BITS_THROW_IF_NOT_FMT(
            p.numVectors >= 0 && p.numVectors <= INT32_MAX,
            "numVectors = %lld is outside 0..%d",
            (long long)p.numVectors,
            INT32_MAX);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.metric <= Metric::Jaccard,
            "metric = %d is unknown",
            int(p.metric));
#ifdef FAISS_BITS_PRODUCTS_ONLY
    BITS_THROW_IF_NOT_FMT(
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct,
            "metric = %d is neither L2 nor InnerProduct, which are all that "
            "this build has",
            int(p.metric));
#endif
    BITS_THROW_IF_NOT_FMT(
            p.metric != Metric::Lp ||
                    (std::isfinite(p.metricArg) && p.metricArg > 0),
            "metricArg = %g is no p of a metric Lp: finite and above 0",
            double(p.metricArg));
    BITS_THROW_IF_NOT_FMT(
            p.dataType == DataType::Float32 ||
                    p.dataType == DataType::Float16 ||
                    p.dataType == DataType::BFloat16,
            "dataType = %d is unknown",
            int(p.dataType));
    BITS_THROW_IF_NOT_FMT(
            p.idType == IdType::Int32 || p.idType == IdType::Int64,
            "idType = %d is neither Int32 nor Int64",
            int(p.idType));
    BITS_THROW_IF_NOT_FMT(
            p.batchQueries == 0 || p.batchQueries >= p.numQueries,
            "batchQueries = %lld is below numQueries = %lld",
            (long long)p.batchQueries,
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.allowedBits || !p.allowedIds,
            "allowedBits = nullptr, but allowedIds is set");
    BITS_THROW_IF_NOT_FMT(
            !p.allowedIds || (p.numAllowed >= 0 && p.numAllowed <= INT32_MAX),
            "numAllowed = %lld is outside 0..%d",
            (long long)p.numAllowed,
            INT32_MAX);
    BITS_THROW_IF_NOT_FMT(
            p.numWithin >= 0,
            "numWithin = %lld is negative",
            (long long)p.numWithin);
    BITS_THROW_IF_NOT_FMT(
            p.device.multiprocessors >= 1,
            "device.multiprocessors = %d is below 1",
            p.device.multiprocessors);
    BITS_THROW_IF_NOT_FMT(
            p.mode <= SearchMode::Fast,
            "mode = %d is none of Certified, Plain and Fast",
            int(p.mode));
    BITS_THROW_IF_NOT_FMT(
            p.metric != Metric::Cosine || !p.exactQueries,
            "exactQueries is set, but metric = %d has no bound for queries "
            "that were rounded",
            int(p.metric));
}

} // namespace faiss_bits
