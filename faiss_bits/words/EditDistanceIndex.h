#pragma once

#include <memory>
#include <string>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/words/DeviceWordRange.h"
#include "kernels/words/WordRange.h"

namespace faiss_bits {

/// Words to be searched by edit distance (Levenshtein), exactly: the fewest
/// letters that have to be inserted, deleted or replaced.
///
/// Words    UTF-8, one behind the other: word i is the bytes offsets[i] to
///          offsets[i + 1]; id i. A letter is a code point. Equal words are
///          words of their own, empty ones are words too
/// Device   "auto": the current GPU if there is one, else the CPU. "gpu": a GPU
///          or an exception. "cpu"
/// Methods  "auto", "trie", "brute_force", "list_of_clusters", "sss"
///          (kernels/words/Method.h); all give the same answers. What the last
///          two need is made by the first search that asks for it
/// On a GPU queries and words of up to 4,095 letters, tries for queries of up
///          to 63 letters and up to 4 edits: "auto" searches what is beyond on
///          the CPU, "gpu" refuses it
/// Threads  any number may search at a time; on a GPU one after the other
/// Errors   FaissException that names the argument and its value; for bytes
///          that are not UTF-8, the word and the byte
/// Interrupts  faiss::InterruptCallback is asked now and then: FaissException
class EditDistanceIndex {
   public:
    /// Of n words, which are copied.
    EditDistanceIndex(
            idx_t n,
            const uint8_t* words,
            const idx_t* offsets,
            const std::string& device = "auto");
    ~EditDistanceIndex();
    EditDistanceIndex(const EditDistanceIndex&) = delete;
    EditDistanceIndex& operator=(const EditDistanceIndex&) = delete;

    /// Number of words.
    idx_t ntotal() const;

    /// True if searches go to a GPU.
    bool onGpu() const;

    /// The number of that GPU, -1 on the CPU.
    int getDevice() const;

    /// All words with distance <= maxDistance (FAISS's range searches are
    /// strict), by ascending id for every query.
    words::WordRange rangeSearch(
            idx_t n,
            const uint8_t* queries,
            const idx_t* offsets,
            idx_t maxDistance,
            const std::string& method = "auto") const;

    /// The same with results on the index's GPU: lims and parts of `result`,
    /// which after an exception are empty. Waits for the GPU. What only the CPU
    /// can search is copied there.
    ///
    /// Errors   FaissException for an index on the CPU
    void rangeSearchOnDevice(
            idx_t n,
            const uint8_t* queries,
            const idx_t* offsets,
            idx_t maxDistance,
            DeviceWordRange& result,
            const std::string& method = "auto") const;

    /// The k nearest words, by (distance, id). Where there are fewer: distance
    /// 2^31 - 1, label -1. On a GPU, what has less than k words within 4 edits
    /// is searched on the CPU.
    ///
    /// distances, labels  [n, k]
    void search(
            idx_t n,
            const uint8_t* queries,
            const idx_t* offsets,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const std::string& method = "auto") const;

    /// What rangeSearch would do with n queries of so many letters, in a line.
    std::string plan(
            idx_t n,
            idx_t queryLength,
            idx_t maxDistance,
            const std::string& method = "auto") const;

   private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

} // namespace faiss_bits
