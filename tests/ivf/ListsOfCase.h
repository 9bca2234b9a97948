#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/common/DeviceBuffer.h"
#include "tests/ivf/IvfKernelCase.h"
#include "tests/ivf/ListCodes.h"

namespace faiss_bits::test {

/// Lists of a case, on the device and as what they hold: made in the order of
/// the functions, which share a random generator with the caller.
class ListsOfCase {
   public:
    explicit ListsOfCase(const KernelCase& which) : c(which) {}

    ListsOfCase(const ListsOfCase&) = delete;
    ListsOfCase& operator=(const ListsOfCase&) = delete;

    const KernelCase c;

   protected:
    void code() {
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            vectors_.push_back(fillRows(
                    c.fill, c.lengths[l], c.d, c.seed * 1000 + uint32_t(l)));
        }
        std::vector<float> centroids;
        if (c.isResidual) {
            centroids =
                    fillRows(c.fill, idx_t(c.lengths.size()), c.d, c.seed + 1);
            centroids_ = DeviceBuffer<float>(centroids);
            lists_.decoding.centroids = centroids_.data();
        }
        // Ranges and codebooks are of the values, too.
        const ListCoder coder(
                c.coding, c.d, c.numParts, c.partBits, [&](idx_t n) {
                    return fillRows(c.fill, n, 1, c.seed + 2);
                });
        trained_ = DeviceBuffer<float>(coder.trained());
        if (c.coding == ListCoding::Product) {
            lists_.decoding.codebook = trained_.data();
            lists_.decoding.numParts = c.numParts;
            lists_.decoding.partBits = c.partBits;
        } else if (isScalar(c.coding)) {
            lists_.decoding.trained = trained_.data();
            lists_.decoding.ranges = c.d;
            lists_.decoding.byInverse = coder.byInverse();
        }
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            codes_.emplace_back(coder.code(
                    vectors_[l],
                    c.lengths[l],
                    c.layout,
                    c.seed * 100 + uint32_t(l)));
            for (size_t i = 0; c.isResidual && i < vectors_[l].size(); ++i) {
                vectors_[l][i] += centroids[l * c.d + i % c.d];
            }
        }
    }

    /// Ids in no order.
    void number(std::mt19937& random) {
        const int64_t n =
                std::accumulate(c.lengths.begin(), c.lengths.end(), int64_t(0));
        std::vector<int64_t> all(n);
        std::iota(all.begin(), all.end(), int64_t(0));
        std::shuffle(all.begin(), all.end(), random);
        auto next = all.begin();
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            ids_.emplace_back();
            for (int i = 0; i < c.lengths[l]; ++i) {
                const int64_t id = *next++;
                ids_[l].push_back(
                        c.idKind == ListIds::Places ? int64_t(l) << 32 | i
                                : c.idKind == ListIds::Given32 ||
                                        c.filter == KernelFilter::IdBits
                                ? id
                                : id * ((int64_t(1) << 33) + 1));
            }
        }
    }

    void filter(std::mt19937& random) {
        std::uniform_real_distribution<double> unit(0, 1);
        for (int length : c.lengths) {
            std::vector<bool> selected(length);
            for (int i = 0; i < length; ++i) {
                selected[i] = c.selected == 1 || unit(random) < c.selected;
            }
            isSelected_.push_back(std::move(selected));
        }
        if (c.filter == KernelFilter::IdRange) {
            selectRange();
        } else if (c.selected == 1) {
            return;
        } else if (c.filter == KernelFilter::IdBits) {
            uploadIdBits();
        } else {
            uploadWords();
        }
    }

    void uploadWords() {
        const int longest =
                *std::max_element(c.lengths.begin(), c.lengths.end());
        const int evenWords = std::max(1, (longest + 31) / 32);
        std::vector<uint32_t> words, firstWords;
        for (const auto& selected : isSelected_) {
            firstWords.push_back(uint32_t(words.size()));
            words.resize(
                    words.size() +
                    (c.evenWords ? evenWords : (selected.size() + 31) / 32));
            for (size_t i = 0; i < selected.size(); ++i) {
                words[firstWords.back() + i / 32] |= uint32_t(selected[i])
                        << i % 32;
            }
        }
        firstWords.push_back(uint32_t(words.size()));
        words_ = DeviceBuffer<uint32_t>(words);
        firstWords_ = DeviceBuffer<uint32_t>(firstWords);
        lists_.selectedBits = words_.data();
        lists_.firstWords = c.evenWords ? nullptr : firstWords_.data();
        lists_.wordsOfList = c.evenWords ? uint32_t(evenWords) : 0;
    }

    template <class Take>
    void forIds(const Take& take) {
        for (size_t l = 0; l < ids_.size(); ++l) {
            for (size_t i = 0; i < ids_[l].size(); ++i) {
                take(ids_[l][i], l, i);
            }
        }
    }

    /// As many bytes as some of the ids need: those behind are not selected,
    /// or, inverted, are.
    void uploadIdBits() {
        int64_t most = 0;
        forIds([&](int64_t id, size_t, size_t) { most = std::max(most, id); });
        std::vector<uint8_t> bytes(size_t(most / 8 + 1) * 3 / 4);
        forIds([&](int64_t id, size_t l, size_t i) {
            const bool isIn = isSelected_[l][i] != c.inverted;
            if (size_t(id / 8) < bytes.size()) {
                bytes[id / 8] |= uint8_t(isIn << id % 8);
            } else {
                isSelected_[l][i] = c.inverted;
            }
        });
        idBytes_ = DeviceBuffer<uint8_t>(bytes);
        lists_.idTest.kind = ListIdTest::Kind::Bits;
        lists_.idTest.bytes = idBytes_.data();
        lists_.idTest.numBytes = idx_t(bytes.size());
        lists_.idTest.isInverted = c.inverted;
    }

    /// The ids from a third of all on, in ascending order.
    void selectRange() {
        std::vector<int64_t> all;
        forIds([&](int64_t id, size_t, size_t) { all.push_back(id); });
        std::sort(all.begin(), all.end());
        ListIdTest& test = lists_.idTest;
        test.kind = ListIdTest::Kind::Range;
        test.isInverted = c.inverted;
        const size_t first = all.size() / 3;
        const size_t end = std::min(
                all.size(), first + size_t(double(all.size()) * c.selected));
        if (!all.empty()) {
            test.first = all[first];
            test.end = end < all.size() ? all[end] : all.back() + 1;
        }
        forIds([&](int64_t id, size_t l, size_t i) {
            isSelected_[l][i] =
                    (id >= test.first && id < test.end) != c.inverted;
        });
    }

    void upload() {
        // Lists side by side, with NaN and -1 between them.
        std::vector<uint8_t> codes, ids;
        std::vector<size_t> codesAt, idsAt;
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            codesAt.push_back(append(codes, codes_[l], c.listShift));
            if (c.idKind == ListIds::Given32) {
                idsAt.push_back(append(
                        ids,
                        std::vector<int32_t>(ids_[l].begin(), ids_[l].end())));
            } else {
                idsAt.push_back(append(ids, ids_[l]));
            }
        }
        deviceCodes_ = DeviceBuffer<uint8_t>(codes);
        deviceIds_ = DeviceBuffer<uint8_t>(ids);
        std::vector<const void*> codePointers, idPointers;
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            const bool isThere = c.lengths[l] > 0;
            codePointers.push_back(
                    isThere ? deviceCodes_.data() + codesAt[l] : nullptr);
            idPointers.push_back(
                    isThere ? deviceIds_.data() + idsAt[l] : nullptr);
        }
        codePointers_ = DeviceBuffer<const void*>(codePointers);
        idPointers_ = DeviceBuffer<const void*>(idPointers);
        lengths64_ = DeviceBuffer<int64_t>(
                std::vector<int64_t>(c.lengths.begin(), c.lengths.end()));
        lengths32_ = DeviceBuffer<int32_t>(
                std::vector<int32_t>(c.lengths.begin(), c.lengths.end()));
        lists_.numLists = idx_t(c.lengths.size());
        lists_.d = c.d;
        lists_.numVectors =
                std::accumulate(c.lengths.begin(), c.lengths.end(), idx_t(0));
        lists_.layout = c.layout;
        lists_.coding = c.coding;
        lists_.vectors = codePointers_.data();
        lists_.lengths = c.lengths64
                ? static_cast<const void*>(lengths64_.data())
                : lengths32_.data();
        lists_.lengths64 = c.lengths64;
        lists_.idKind = c.idKind;
        lists_.ids = c.idKind == ListIds::Places ? nullptr : idPointers_.data();
    }

    std::vector<std::vector<float>> vectors_; // decoded
    std::vector<std::vector<int64_t>> ids_;
    std::vector<std::vector<bool>> isSelected_;
    IvfLists lists_;

   private:
    /// Behind the bytes so far, as by FAISS on 256 bytes, or `shift` behind
    /// them; returns where.
    template <class T>
    static size_t append(
            std::vector<uint8_t>& bytes,
            const std::vector<T>& values,
            int shift = 0) {
        constexpr size_t kAlignment = 256;
        const size_t at =
                (bytes.size() + kAlignment) / kAlignment * kAlignment + shift;
        bytes.resize(at, 0xFF);
        const auto* from = reinterpret_cast<const uint8_t*>(values.data());
        bytes.insert(bytes.end(), from, from + values.size() * sizeof(T));
        return at;
    }

    std::vector<std::vector<uint8_t>> codes_;
    DeviceBuffer<float> centroids_, trained_;
    DeviceBuffer<int64_t> lengths64_;
    DeviceBuffer<int32_t> lengths32_;
    DeviceBuffer<uint32_t> words_, firstWords_;
    DeviceBuffer<uint8_t> deviceCodes_, deviceIds_, idBytes_;
    DeviceBuffer<const void*> codePointers_, idPointers_;
};

} // namespace faiss_bits::test
