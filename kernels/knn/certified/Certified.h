#pragma once

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/certified/VectorGroups.h"
#include "kernels/knn/nearest/FewDimsKernels.h"

/// The certified search around a generator of candidates: k and some more by
/// approximate distances, then canonical ones (kernels/canonical/Distance.h),
/// a proof that no vector is missing, and where it fails a search by canonical
/// distances of all vectors. The host waits for nothing. docs/exact.md
namespace faiss_bits {

/// Scratch of a certified search beside that of the generator.
struct CertifiedScratch {
    float* keys = nullptr;       // [tileQueries, candidates]
    int32_t* columns = nullptr;  // the same
    uint64_t* entries = nullptr; // the same, where a row has several blocks
    uint8_t* flags = nullptr;    // [tileQueries, 2]
    float* exact = nullptr; // [tileQueries, d] where queries are to be widened
    float* rounded = nullptr; // the same
    float* norms = nullptr;   // [n] where none are given and products need them
    float* greatestNorm = nullptr; // [1] likewise
    RowMaxima* maxima = nullptr;   // [1], for metrics that want them
    uint32_t* counts = nullptr;    // [kMaxScanSlots]
    uint64_t* limits = nullptr;    // the same
    /// The lists of the scan lie where the distances of the generator lay.
    uint64_t* lists = nullptr;
    size_t listEntries = 0;
    // Where there is to be a second search: what it takes beside the lists, or
    // of few dimensions (searchesFewDimsAgain) in place of them.
    VectorGroups groups;
    FewDimsParams fewDims; // strips = 0: not so

    /// Takes its slices; the lists are set by the caller. No candidates: those
    /// of a scan with the exact queries, whose memory is the caller's too.
    void take(
            const FlatKnnProblem& problem,
            int candidates,
            idx_t tileQueries,
            WorkspaceSlices& slices);

    /// Takes what Certifier::begin() makes of the vectors for that bound.
    void takeFacts(
            const FlatKnnProblem& problem,
            const ErrorBound& bound,
            WorkspaceSlices& slices);

    /// Takes what the second search needs beside the lists: to meet equal
    /// vectors once, two bytes a vector and up to 4 MiB; of few dimensions up
    /// to 64 MiB and 16 bytes a query.
    void takeAgain(
            const FlatKnnProblem& problem,
            idx_t tileQueries,
            WorkspaceSlices& slices);
};

/// Candidates to ask a generator for: k and a margin, so that the proof
/// succeeds for most queries of most data, but no more than there are vectors.
int candidatesFor(const FlatKnnProblem& problem);

/// Least entries of the lists of a scan, and as many as make it fast for up to
/// so many rows: none where there are no lists.
size_t leastListEntries(const FlatKnnProblem& problem);
size_t wantedListEntries(const FlatKnnProblem& problem, idx_t rows);

/// A search at work, after its candidates were found.
class Certifier {
   public:
    /// The problem and the scratch must outlive it. `bound` is that of the
    /// generator.
    Certifier(
            const FlatKnnProblem& problem,
            int candidates,
            const ErrorBound& bound,
            const CertifiedScratch& scratch,
            cudaStream_t stream);

    /// Enqueues what all tiles need of the vectors (takeFacts). Once, before
    /// the first.
    void begin();

    /// Enqueues what makes results of the candidates of some queries, which lie
    /// in the scratch from row 0 on.
    void finish(idx_t firstQuery, idx_t count);

    /// What the steps of finish() do, for others who score candidates: enqueues
    /// what makes the queries ready, and returns what kernels get of them.
    CertifiedParams enter(idx_t firstQuery, idx_t count);
    /// Enqueues the second search, for those whose flags are set. haveResults:
    /// all of these rows have results, by canonical distances and in order,
    /// which need not be the best, or empty places; the k-th is a limit.
    void scanAgain(const CertifiedParams& params, bool haveResults = false);

   private:
    CertifiedParams paramsOf(idx_t firstQuery, idx_t count) const;
    ScanAgainParams scanOf(const CertifiedParams& params) const;
    void scanAgain(const ScanAgainParams& scan);

    const FlatKnnProblem& p_;
    const int candidates_;
    const ErrorBound bound_;
    const CertifiedScratch& scratch_;
    cudaStream_t stream_;
};

} // namespace faiss_bits
