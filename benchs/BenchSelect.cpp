/// Times kernels/select against FAISS's WarpSelect and BlockSelect.
/// benchs/README.md says how and why.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "benchs/FaissSelect.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "kernels/select/Select.h"

namespace faiss_bits::bench {
namespace {

struct Cell {
    int64_t rows;
    int64_t cols;
    int k;
    DataType type = DataType::Float32;
    Order order = Order::Random;
};

using Shape = std::pair<int64_t, int64_t>;

const std::vector<Shape> kShapes = {
        {1, int64_t(1) << 27},
        {64, 1 << 24},
        {256, 1 << 22},
        {1024, 1 << 20},
        {4096, 1 << 18},
        {16384, 1 << 15}};

/// The published set: random rows first, then slow cases and half keys.
std::vector<Cell> publishedCells() {
    std::vector<Cell> cells;
    for (auto [rows, cols] : kShapes) {
        for (int k : {1, 10, 32, 128, 512, 1024, 2048}) {
            cells.push_back({rows, cols, k});
        }
    }
    const std::vector<Shape> some = {kShapes[1], kShapes[3], kShapes[5]};
    for (auto [rows, cols] : some) {
        for (int k : {10, 128, 2048}) {
            cells.push_back(
                    {rows, cols, k, DataType::Float32, Order::Descending});
        }
    }
    for (auto [rows, cols] : some) {
        for (int k : {10, 128, 2048}) {
            cells.push_back({rows, cols, k, DataType::Float16});
        }
    }
    for (Order order : {Order::Ascending, Order::Equal}) {
        for (int k : {10, 2048}) {
            cells.push_back({1024, 1 << 20, k, DataType::Float32, order});
        }
    }
    return cells;
}

std::vector<Shape> parseShapes(const std::string& list) {
    std::vector<Shape> shapes;
    for (const std::string& part : splitList(list)) {
        const auto sides = splitList(part, 'x');
        if (sides.size() != 2) {
            std::fprintf(stderr, "'%s' is not ROWSxCOLS\n", part.c_str());
            std::exit(2);
        }
        shapes.push_back(
                {parseNumbers(sides[0])[0], parseNumbers(sides[1])[0]});
    }
    return shapes;
}

/// Keeps the cells whose field is in the list; an empty list keeps all.
template <class T, class Field>
void keepOnly(
        std::vector<Cell>& cells,
        const std::vector<T>& list,
        Field field) {
    if (list.empty()) {
        return;
    }
    std::erase_if(cells, [&](const Cell& cell) {
        return std::find(list.begin(), list.end(), field(cell)) == list.end();
    });
}

int multiprocessorCount() {
    int device = 0;
    int count = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

/// The keys of one shape, type and order, as many times as fit 4 GiB, so that
/// no repeat finds its keys in the L2.
class Keys {
   public:
    void prepare(const Cell& cell) {
        const int64_t bytes =
                cell.rows * cell.cols * int64_t(sizeOf(cell.type));
        if (data_.size() > 0 && last_.rows == cell.rows &&
            last_.cols == cell.cols && last_.type == cell.type &&
            last_.order == cell.order) {
            return;
        }
        last_ = cell;
        // Slices start at multiples of 256 bytes, as cudaMalloc gives them.
        stride_ = (bytes + 255) / 256 * 256;
        slices_ = std::max<int64_t>(
                1, std::min<int64_t>(64, (int64_t(1) << 32) / stride_));
        if (size_t(slices_ * stride_) > data_.size()) {
            data_ = DeviceArray<uint8_t>();
            data_ = DeviceArray<uint8_t>(slices_ * stride_);
        }
        for (int64_t i = 0; i < slices_; ++i) {
            fillKeys(
                    at(int(i)),
                    cell.type,
                    cell.rows,
                    cell.cols,
                    cell.order,
                    i + 1);
        }
    }

    void* at(int i) const {
        return data_.data() + i % slices_ * stride_;
    }

    /// False if the slices together stay within reach of the L2.
    bool isBeyondCache() const {
        return slices_ * stride_ > (int64_t(1) << 28);
    }

   private:
    DeviceArray<uint8_t> data_;
    Cell last_{};
    int64_t stride_ = 0;
    int64_t slices_ = 1;
};

class SelectBench {
   public:
    SelectBench(const Options& options)
            : options_(options),
              budget_(options.maxSeconds),
              bandwidth_(measureReadBandwidth()),
              report_(options.out, collectMeta(options, bandwidth_)) {
        std::printf("read bandwidth %.0f GB/s\n", bandwidth_);
    }

    void run(const std::vector<Cell>& cells) {
        for (size_t i = 0; i < cells.size(); ++i) {
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: %zu of %zu cells left out\n",
                        cells.size() - i,
                        cells.size());
                break;
            }
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

   private:
    void runCell(const Cell& cell) {
        keys_.prepare(cell);
        if (!keys_.isBeyondCache()) {
            std::printf("note: the keys of the next cell fit the L2\n");
        }
        const size_t places = size_t(cell.rows) * cell.k;
        outKeys_ = DeviceArray<uint8_t>(places * sizeOf(cell.type));
        outIds_ = DeviceArray<int64_t>(places);
        measure(cell, "faiss_bits");
        const std::vector<uint8_t> ours = firstKeys(cell);
        for (const char* rival : {"faiss_block", "faiss_warp"}) {
            if (!options_.wants(rival)) {
                continue;
            }
            if (cell.type != DataType::Float32) {
                std::printf("note: %s has no half keys\n", rival);
                continue;
            }
            measure(cell, rival);
            if (firstKeys(cell) != ours) {
                std::printf("WRONG: other keys than faiss_bits\n");
                ++wrong_;
            }
        }
    }

    void measure(const Cell& cell, const std::string& method) {
        DeviceArray<uint8_t> scratch;
        std::function<void(int)> call;
        if (method == "faiss_bits") {
            SelectProblem p;
            p.rows = cell.rows;
            p.cols = cell.cols;
            p.k = cell.k;
            p.keyType = cell.type;
            p.outKeys = outKeys_.data();
            p.outIds = outIds_.data();
            p.multiprocessors = multiprocessors_;
            scratch = DeviceArray<uint8_t>(selectWorkspaceBytes(p));
            call = [&, p](int i) mutable {
                p.keys = keys_.at(i);
                runSelect(p, {scratch.data(), scratch.size()}, nullptr);
            };
        } else {
            auto* select = method == "faiss_block" ? runFaissBlockSelect
                                                   : runFaissWarpSelect;
            call = [&, select](int i) {
                select(static_cast<const float*>(keys_.at(i)),
                       cell.rows,
                       cell.cols,
                       cell.k,
                       reinterpret_cast<float*>(outKeys_.data()),
                       reinterpret_cast<gpu::ImplSize*>(outIds_.data()),
                       nullptr);
            };
        }
        const Measured time = timeCall(call, {});
        const double bytes =
                double(cell.rows) * double(cell.cols) * sizeOf(cell.type);
        const double fraction = bytes / (bandwidth_ * 1e6) / time.ms;
        report_.add(Row().text("bench", "select")
                            .text("method", method)
                            .integer("rows", cell.rows)
                            .integer("cols", cell.cols)
                            .integer("k", cell.k)
                            .text("dtype", nameOf(cell.type))
                            .text("order", nameOf(cell.order))
                            .number("ms", time.ms)
                            .number("frac_read", fraction));
        std::printf(
                "%5.0fs %-11s %6lld x %-9lld k=%-4d %s %-10s %10.4f ms "
                "%6.3f of read (%d)\n",
                budget_.seconds(),
                method.c_str(),
                (long long)cell.rows,
                (long long)cell.cols,
                cell.k,
                nameOf(cell.type).c_str(),
                nameOf(cell.order).c_str(),
                time.ms,
                fraction,
                time.repeats);
        std::fflush(stdout);
    }

    /// Keys of the first rows as the last call (on slice 0) left them.
    std::vector<uint8_t> firstKeys(const Cell& cell) const {
        std::vector<uint8_t> keys(
                std::min<int64_t>(cell.rows, 8) * cell.k * sizeOf(cell.type));
        BITS_CUDA_CHECK(cudaMemcpy(
                keys.data(),
                outKeys_.data(),
                keys.size(),
                cudaMemcpyDeviceToHost));
        return keys;
    }

    const Options& options_;
    Budget budget_;
    double bandwidth_;
    Report report_;
    int multiprocessors_ = multiprocessorCount();
    Keys keys_;
    DeviceArray<uint8_t> outKeys_;
    DeviceArray<int64_t> outIds_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    std::vector<Shape> shapes;
    std::vector<int64_t> ks;
    std::vector<std::string> orders;
    std::vector<std::string> types;
    const Options options = parseOptions(
            argc,
            argv,
            {{"--shapes",
              "ROWSxCOLS, with commas; 2^20 is a number (default: published)",
              [&](const std::string& v) { shapes = parseShapes(v); }},
             {"--ks",
              "k, with commas (default: published)",
              [&](const std::string& v) { ks = parseNumbers(v); }},
             {"--orders",
              "of random,descending,ascending,equal",
              [&](const std::string& v) { orders = splitList(v); }},
             {"--dtypes", "of float32,float16", [&](const std::string& v) {
                  types = splitList(v);
              }}});

    std::vector<Cell> cells = publishedCells();
    if (!shapes.empty() && !ks.empty()) {
        // Both given: any cells, published or not.
        cells.clear();
        for (auto [rows, cols] : shapes) {
            for (int64_t k : ks) {
                for (DataType type : {DataType::Float32, DataType::Float16}) {
                    for (Order order :
                         {Order::Random,
                          Order::Descending,
                          Order::Ascending,
                          Order::Equal}) {
                        cells.push_back({rows, cols, int(k), type, order});
                    }
                }
            }
        }
        orders = orders.empty() ? std::vector<std::string>{"random"} : orders;
        types = types.empty() ? std::vector<std::string>{"float32"} : types;
    }
    keepOnly(
            cells, shapes, [](const Cell& c) { return Shape(c.rows, c.cols); });
    keepOnly(cells, ks, [](const Cell& c) { return int64_t(c.k); });
    keepOnly(cells, orders, [](const Cell& c) { return nameOf(c.order); });
    keepOnly(cells, types, [](const Cell& c) { return nameOf(c.type); });
    if (cells.empty()) {
        std::fprintf(stderr, "no cells are left\n");
        return 2;
    }
    SelectBench bench(options);
    bench.run(cells);
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    try {
        return faiss_bits::bench::runMain(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
