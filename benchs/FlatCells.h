#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <faiss/Index.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"

namespace faiss_bits::bench {

/// What benches of flat searches on one GPU have in common: cells in their
/// order while time is left, with new indexes where sharesIndexes(a, b) of two
/// neighbours is false. A Cell has n, d, q and k.
template <class Cell>
class FlatCells {
   public:
    explicit FlatCells(const Options& options)
            : options_(options),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {}
    virtual ~FlatCells() = default;

    void run(const std::vector<Cell>& cells) {
        for (size_t i = 0; i < cells.size(); ++i) {
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: %zu of %zu cells left out\n",
                        cells.size() - i,
                        cells.size());
                break;
            }
            if (i == 0 || !sharesIndexes(cells[i - 1], cells[i])) {
                int64_t mostQueries = 0;
                for (size_t j = i;
                     j < cells.size() && sharesIndexes(cells[i], cells[j]);
                     ++j) {
                    mostQueries = std::max(mostQueries, cells[j].q);
                }
                prepare(cells[i], mostQueries);
            }
            distances_ = DeviceArray<float>(cells[i].q * cells[i].k);
            labels_ = DeviceArray<idx_t>(cells[i].q * cells[i].k);
            runCell(cells[i]);
        }
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_);
    }

    bool isRight() const {
        return wrong_ == 0;
    }

   protected:
    /// Indexes, and queries_ [mostQueries, d].
    virtual void prepare(const Cell& cell, int64_t mostQueries) = 0;

    /// Times what is to be timed, and adds it to report_.
    virtual void runCell(const Cell& cell) = 0;

    /// With arrays on the device, and nothing in its L2.
    Measured timeSearch(const Cell& cell, const faiss::Index& index) {
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        return timeCall(
                [&](int) {
                    index.search(
                            cell.q,
                            queries_.data(),
                            cell.k,
                            distances_.data(),
                            labels_.data());
                },
                mode);
    }

    static double gigaDistances(const Cell& cell, const Measured& time) {
        return double(cell.q) * double(cell.n) / (time.ms * 1e6);
    }

    /// FAISS has no k = 2048 and more.
    static bool isRivalsToo(const Cell& cell) {
        if (cell.k >= 2048) {
            std::printf("note: faiss_flat has no k = %d\n", cell.k);
        }
        return cell.k < 2048;
    }

    std::vector<idx_t> firstLabels(const Cell& cell) const {
        return downloadLabels(labels_, std::min<int64_t>(cell.q, 16) * cell.k);
    }

    /// Of the labels of both.
    void requireAlike(
            const std::vector<idx_t>& ours,
            const std::vector<idx_t>& theirs,
            int k) {
        const double share = shareInBoth(ours, theirs, k);
        if (share < 0.9) {
            std::printf("WRONG: only %.3f of the labels in both\n", share);
            ++wrong_;
        }
    }

    const Options& options_;
    Budget budget_;
    Report report_;
    CacheFlush flush_;
    DeviceArray<float> queries_;
    DeviceArray<float> distances_; ///< of the last search
    DeviceArray<idx_t> labels_;    ///< of the last search
    int wrong_ = 0;
};

} // namespace faiss_bits::bench
