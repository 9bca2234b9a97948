#pragma once

#include <cstdint>
#include <memory>

#include "kernels/common/Error.h"
#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/knn/ErrorBound.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/certified/CertifiedParams.h"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/PassedLists.h"
#include "kernels/knn/fused/PassedWords.h"
#include "kernels/knn/fused/tensor/NearestStrips.h"
#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/StripKeys.h"

namespace faiss_bits {

/// One search's scan of all vectors by one method.
class FusedScan {
   public:
    virtual ~FusedScan() = default;

    /// A sample of the vectors, [samples, d] of the method's sampleType, and
    /// its squared norms, if they are known.
    struct Sample {
        const void* vectors = nullptr;
        const float* norms = nullptr;
    };

    /// Which vectors bits are (PassedLists).
    virtual SpreadRows rows() const {
        return {};
    }

    /// Enqueues what all scans of the search need, once before the first, and
    /// the sample, if there is to be one (samples > 0), to `room` or elsewhere.
    /// A method may move vectors and queries together.
    virtual Sample begin(float* room, idx_t samples, cudaStream_t stream) = 0;

    /// Enqueues what the scan of some queries needs, and sets what of the
    /// parameters its bound depends on. params.queries are the exact ones,
    /// row-major. Returns those that meet the sample, of the method's
    /// sampleType, if there is one.
    virtual const void* enter(CertifiedParams& params, cudaStream_t) {
        return params.queries;
    }

    /// Makes ready a scan in 8 bits for the queries that enter() had, if there
    /// is one: run() has it take what it is good for, once the limits are made.
    virtual ByteSearch takeBytes(idx_t /* queries */, cudaStream_t) {
        return {};
    }

    /// So many vectors of a query are expected to pass run(): kernels may suit
    /// it.
    virtual void expectPassing(double) {}

    /// enter(), limits of that rank and run() in one kernel (PassAtOnce.h):
    /// sets the bits, and what is complete with them. Of tensor cores alone.
    virtual void passAtOnce(
            CertifiedParams&,
            uint32_t /* rank */,
            const PassedWords&,
            float* /* complete */,
            cudaStream_t) {
        throw Error("this method has no such kernel");
    }

    /// Enqueues the scan for the queries that enter() had. The counts are zero.
    virtual void run(
            const CertifiedParams& params,
            const PassedLists& lists,
            cudaStream_t stream) = 0;

    /// [rows] of the queries that enter() had: what products
    /// (PassedLists::products) are multiplied by, beside that of the vectors.
    /// Of tensor cores alone.
    virtual const float* inverses() const {
        return nullptr;
    }

    /// As run() over the second sample; allowedBits: of its members. Returns
    /// its vectors' ids.
    virtual const int32_t* runSecond(
            const PassedLists&,
            idx_t /* queries */,
            const uint32_t* /* allowedBits */,
            cudaStream_t) {
        return nullptr;
    }

    /// The least key of every strip, of all vectors or of the second sample, in
    /// place of what is within limits: for so many queries, those that enter()
    /// had. Of tensor cores alone.
    virtual void runStrips(
            const StripPlan&,
            bool /* ofSecond */,
            float*,
            idx_t,
            cudaStream_t) {
        throw Error("this method finds no keys of strips");
    }

    /// The nearest of every strip, in place of what is within limits: for so
    /// many queries, those that enter() had. Of tensor cores alone.
    virtual void runNearest(const NearestStrips&, idx_t, cudaStream_t) {
        throw Error("this method finds no nearest of strips");
    }
};

/// Of what the limits of a search's scans are made: it may need scratch.
enum class LimitsOf : uint8_t {
    Others, ///< another scan of the same vectors, or they are given
    Sample, ///< distances to the sample, which enter() returns queries for
    SecondStrips, ///< strips of the second sample
};

/// A way to find the candidates of a certified search without a matrix of
/// distances: distances are compared with a limit where they are computed, and
/// what passes is appended to its query's list.
struct FusedMethod {
    const char* name;

    /// True if it can, and is better than distances in memory. Reads shape,
    /// types and layouts.
    bool (*takes)(const FlatKnnProblem& problem);

    /// Of the sample and the queries that meet it: float32, or bfloat16 where a
    /// product in float32 would be a large part of the work.
    DataType sampleType;
    /// It brings the sample's memory: there is no room to bring.
    bool bringsSample;

    /// Vectors of a second sample, which it can scan by itself: a limit from
    /// more vectors lets fewer pass. 0: there is none. nullptr: never.
    idx_t (*secondSamples)(const FlatKnnProblem& problem);

    /// How far its keys may be from the canonical distances.
    ErrorBound (*bound)(const FlatKnnProblem& problem);

    /// Takes the method's scratch, for scans of tileQueries queries, and gets
    /// ready. With slices that only measure, nothing else is done with what is
    /// returned. The problem must outlive it.
    std::unique_ptr<FusedScan> (*prepare)(
            const FlatKnnProblem& problem,
            idx_t tileQueries,
            LimitsOf limits,
            WorkspaceSlices& slices);

    /// Cosine: the sample, and the queries that meet it, are of normalised
    /// rows, and meet by L2.
    bool normalizes = false;
};

extern const FusedMethod kTensorFusedMethod;
extern const FusedMethod kPairwiseFusedMethod;

/// The first method that takes the problem; nullptr if none does.
const FusedMethod* fusedMethodFor(const FlatKnnProblem& problem);

} // namespace faiss_bits
