#pragma once

#include <atomic>
#include <vector>

#include "kernels/cpu/ivf/IvfScanner.h"

namespace faiss_bits::cpu {

/// Candidates of a row, and how near the others may be.
struct IvfCandidates {
    const float* keys = nullptr;
    const int32_t* slots = nullptr;
    idx_t count = 0;
    bool isAll = false; ///< every vector is among them
    float limit = 0;    ///< no other vector has a key under it
};

/// What a search keeps of a query in one part.
struct IvfBufferShape {
    idx_t candidates = 0; ///< asked for: k and a margin
    idx_t capacity = 0;   ///< before they are cut to that
    idx_t stride = 0;     ///< and room behind
};

/// `largestTotal`: vectors that a query meets at most.
IvfBufferShape ivfBufferShape(const IvfSetup& setup, idx_t largestTotal);

/// The candidates of the queries of a block while the lists go by. Every part
/// is filled by one thread at a time.
class IvfSelection {
   public:
    /// `setup` must outlive it.
    IvfSelection(const IvfSetup& setup, int parts)
            : setup_(setup), parts_(parts), sinks_(parts), used_(parts) {}

    /// Ready for the queries of a block, which must outlive its use.
    void reset(const IvfBlock& block);

    /// An item's keys into a part. A limit that one part has found holds for
    /// all.
    void scan(const IvfItem& item, int part, IvfScanner& scanner);
    /// All items of a row of a block that was built by rows, into the one part.
    void scanRow(idx_t row, IvfScanner& scanner);

    /// Of a row, those of all parts; `keys` and `slots` have room for
    /// mostCandidates(), and are used where there is more than one part.
    IvfCandidates candidatesOf(idx_t row, float* keys, int32_t* slots) const;
    idx_t mostCandidates() const {
        return parts_ * stride_;
    }
    const IvfBlock& block() const {
        return *block_;
    }
    IvfWaysUsed waysUsed() const;

   private:
    const IvfSetup& setup_;
    const IvfBlock* block_ = nullptr;
    int parts_;
    idx_t rows_ = 0, stride_ = 0;
    std::vector<Sink<float>> sinks_;
    std::vector<IvfWaysUsed> used_;
    std::vector<float> limits_, terms_;
    std::vector<RowState> states_;
    std::vector<idx_t> counts_;
    AlignedBuffer<float> keys_;
    AlignedBuffer<int32_t> ids_;
    size_t size_ = 0;                        ///< of keys_ and ids_
    std::vector<std::atomic<float>> shared_; ///< limits of all parts
};

} // namespace faiss_bits::cpu
