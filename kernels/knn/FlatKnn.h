#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/SearchMode.h"
#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"

namespace faiss_bits {

struct RowMaxima;

/// One exact k-nearest-neighbour search over vectors that lie in a matrix.
struct FlatKnnProblem {
    Metric metric = Metric::L2;            ///< any
    float metricArg = 0;                   ///< p of Lp: finite, above 0
    DataType dataType = DataType::Float32; ///< of vectors and queries

    idx_t numVectors = 0; ///< n
    /// Vectors that are searched together at most, a multiple of 32; n above it
    /// is searched part by part. 0: 2^31 - 1, and parts of 2^31 - 32. Others
    /// are for tests.
    idx_t partVectors = 0;
    idx_t numQueries = 0; ///< 0 or more
    /// Queries of the caller's whole batch, of which these are some; chooses
    /// the arithmetic. 0 = numQueries. A batch that is searched page by page
    /// has the same bits as in one piece, if every page says so.
    idx_t batchQueries = 0;
    int d = 0; ///< dimensions, 1 or more
    int k = 0; ///< neighbours of a query; may exceed n

    const void* vectors = nullptr; ///< [n, d], on the device as all below
    bool vectorsRowMajor = true;   ///< false: [d, n]
    const void* queries = nullptr; ///< [numQueries, d]
    bool queriesRowMajor = true;   ///< false: [d, numQueries]

    /// Squared L2 norms of the vectors, [n], sums in fp32 or better. nullptr:
    /// L2 searches that need them compute them into scratch.
    const float* vectorNorms = nullptr;

    /// Metrics with RowFacts: those of the vectors (runRowFacts), [n], for
    /// callers that search the same vectors many times. nullptr: computed into
    /// scratch.
    const float* vectorFacts = nullptr;
    /// Likewise, what runRowMaxima says of them.
    const RowMaxima* rowMaxima = nullptr;

    /// A filter: vectors whose bit is 0 take no part. Bit i % 32 of word i / 32
    /// is that of vector i, [(n + 31) / 32]; bits from n on may be anything.
    /// nullptr: all vectors.
    const uint32_t* allowedBits = nullptr;
    /// The same vectors as a list, or nullptr: their ids in ascending order,
    /// and behind them -1 in any number, [numAllowed]. It saves the reading of
    /// the others where few are allowed. For row-major vectors; else the bits
    /// serve.
    const int32_t* allowedIds = nullptr;
    idx_t numAllowed = 0; ///< of the list; not read without it

    /// Certified: [numQueries], distances beyond which nobody wants a vector,
    /// for callers that know the k-th of more vectors than these, or guess it;
    /// similarities: below which. A search that is fused takes them in place of
    /// those that it makes of a sample, and may leave out what is beyond them:
    /// its result is then what is not, ties with a limit among it, at most k,
    /// and behind that perhaps some that are. It may be short. Others have all
    /// k.
    /// NaN or an infinity: no limit. nullptr: none.
    const float* limits = nullptr;
    /// With limits: vectors within that of most queries. It decides scratch and
    /// time alone.
    idx_t numWithin = 0;

    SearchMode mode = SearchMode::Certified; ///< what is promised
    /// Certified: the queries before they were rounded to dataType, row-major
    /// [numQueries, d]; the distances are theirs. nullptr: `queries` are exact.
    const float* exactQueries = nullptr;
    /// Certified InnerProduct: the greatest of the vectors' squared norms, on
    /// the device. nullptr: computed, from vectorNorms if they are given.
    const float* greatestNorm = nullptr;
    /// Certified: what searches on tensor cores make of the vectors, kept from
    /// an earlier search of the same vectors, metric and d
    /// (kernels/knn/fused/tensor/SearchImage.h); on the device, aligned to 16
    /// bytes. nullptr: they make it in their scratch.
    const void* searchImage = nullptr;
    /// The image, kept or made for the search, has the vectors in their order,
    /// as range searches need it. false: spread (SpreadRows.h), so that vectors
    /// stored cluster by cluster take no longer than shuffled ones.
    bool imageInOrder = false;
    /// It has one of 8 bits beside it, where such vectors may have
    /// (hasByteImage): worth its memory and making where it is kept.
    bool imageHasBytes = false;
    /// Certified: the number of queries that were repeated (SearchStats) is
    /// added to it, on the device. nullptr: not counted.
    unsigned long long* numRepeated = nullptr;
    /// Likewise, the number of candidates that were scored.
    unsigned long long* numRescored = nullptr;

    float* outDistances = nullptr; ///< [numQueries, k]
    void* outIds = nullptr;        ///< [numQueries, k] of idType
    IdType idType = IdType::Int64; ///< of outIds

    DeviceTraits device; ///< never changes the result
};

/// How runFlatKnn goes about a problem: made once from its shape, it says what
/// scratch to bring and then goes to the run. kernels/knn/FlatKnnPlan.h has
/// what is in it.
struct FlatKnnPlan;

/// Scratch bytes that runFlatKnn would like, but never more than `maxBytes`
/// unless that is less than the least that works, which is then returned.
/// More scratch means larger tiles of the distance matrix and fewer launches;
/// the result has the same bits. Host only, no CUDA call. Throws what
/// runFlatKnn throws for a bad shape.
size_t flatKnnWorkspaceBytes(const FlatKnnProblem& problem, size_t maxBytes);

/// Finds the k nearest vectors of every query, exactly.
///
/// Result   best first (the largest of a similarity, the smallest of other
///          metrics); equal distances: lower id first; never NaN: where the
///          numbers are used up, and where there are fewer than k vectors, the
///          rest is (+FLT_MAX, -1), and (-FLT_MAX, -1) for similarities. The
///          bits of a result do not depend on scratch, stream, tiles or pages
///          (batchQueries). With a filter, as if the allowed vectors were all,
///          with the bits that the search without it gives (Plain: a zero inner
///          product of a batch above 16 queries is +0)
/// Mode     Certified: distances are canonical, as kernels/canonical/Distance.h
///          defines them, and the order is theirs; so the bits do not depend on
///          the size of the batch or the device either. Plain: as below.
///          Fast: as Certified, but where a scan on tensor cores keeps its
///          products (FusedLists.h, answersByKeys) the distances are what these
///          say, and their order that of (distance, id). How far they may be
///          off, and with them the k-th: docs/exact.md
/// Arith.   Certified finds candidates by any arithmetic of bounded error,
///          products of fp16 on tensor cores among them (docs/exact.md). Plain:
///          products and sums in fp32 (never TF32); a batch of at most 16
///          queries: sum((x - q)^2), or the sum of products; a larger one:
///          |x|^2 - 2<q, x> + |q|^2, never below zero, from products that
///          kernels/knn/gemm/Product.h describes. Cosine: such products and
///          the norms. Other metrics: in fp32, component by component, as
///          kernels/knn/pairwise/PairwiseTerms.cuh says. Float16 and BFloat16
///          data are widened to fp32 first
/// Limits   k >= 1, below, at or above n; d >= 1, 0 <= n < 2^31, and up to 2^37
///          - 2^11 of row-major vectors with idType Int64: such are searched in
///          parts of 2^31 - 32 (kernels/knn/parts/PartsKnn.h), which take 12
///          bytes more for each of k places and part, up to 256 MiB for more
///          queries than one, and use no list, no image and no one's limits but
///          the caller's; numRepeated counts a query for each part
/// Stream   enqueues on `stream` and never waits; of the handle nothing is
///          used but the library behind it, so that one of cuBLASLt serves. A
///          plan that is `sortedLine`, `direct`, `fewDims`, `fewDimsTop` or
///          `nearest`, or fused without `sampling`, needs none
/// Memory   any workspace of at least flatKnnWorkspaceBytes(problem, 0) bytes:
///          a few MiB for k <= kMaxSelectK; beyond it about 100 k, or 6 n +
///          16 min(k, n) where that is less; and 4 bytes for every norm that
///          is wanted and not given, or for every query, and vector whose
///          facts are not given, where the metric is one of those with
///          RowFacts, and with a filter for every vector of a tile. Certified:
///          for 256 queries or so at a time also about 10 to 20 bytes for each
///          of k places. From 32 MiB on a certified search for k <= 2048 needs
///          no matrix of distances: it takes up to 1 GiB for lists and a
///          sample, and for more than 16 queries without a searchImage
///          n (2.1 d + 38) bytes; for k = 1 and few vectors 2.1 d + 100 bytes
///          for each of up to 131,072 queries, and of up to 16 dimensions at
///          most 64 MiB and 16 bytes for each; for k <= 16 (cosines k = 1 too,
///          of up to three dimensions k <= 128) and few dimensions up to 42
///          MiB, of cosines 4 d bytes more for each
///          vector and query; of one dimension, by L2 and inner product, 17 n
///          bytes for up to 2^26 vectors; and for a list that is searched by
///          its part of the image numAllowed (2 d + 36); for few pairs up to
///          64 MiB for their keys
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     few pairs, and on GPUs of fast float64 one query in few dimensions:
///          one read of the vectors and three operations of float64 for each
///          component of a pair (kernels/knn/direct/DirectKnn.h); few queries:
///          one read of the vectors; else 2 q n d operations, of
///          fp16 tensor cores where no matrix is needed, and of fp32 with one
///          write and one read of the q x n distances; for k > kMaxSelectK
///          some reads more (docs/algorithms.md). With a list, of the allowed
///          vectors alone, which large batches copy together; with bits alone
///          few queries read the allowed ones, and large batches all
/// Source   Hanak 2023, 5.4; Johnson et al. 2017, 5.1 (exact search)
void runFlatKnn(
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream);

/// The same with a plan of this problem's shape (planFlatKnn), so that nothing
/// is planned twice. The workspace has at least plan.bytes.
void runFlatKnn(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream);

/// Least scratch bytes of runAllDistances. Host only.
size_t allDistancesWorkspaceBytes(const FlatKnnProblem& problem);

/// All distances of [numQueries, n], in the arithmetic of runFlatKnn's large
/// batches. outDistances is [numQueries, n]; k, outIds, idType and the filter
/// are not read. Scratch: allDistancesWorkspaceBytes(problem).
void runAllDistances(
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream);

} // namespace faiss_bits
