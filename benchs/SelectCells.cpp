#include "benchs/SelectCells.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace faiss_bits::bench {

namespace {

constexpr int64_t kMillion = 1 << 20;

const std::vector<Shape> kShapes = {
        {1, 128 * kMillion},
        {64, 16 * kMillion},
        {256, 4 * kMillion},
        {1024, kMillion},
        {4096, kMillion / 4},
        {16384, kMillion / 32}};

/// What a data set of 100,000 vectors is enough for.
const Shape kSiftShape = {1024, 98304};

const std::vector<int> kFewKs = {10, 128, 2048};

/// Random float keys: every shape and k, then k beyond 2048.
std::vector<SelectCell> randomCells() {
    std::vector<SelectCell> cells;
    for (auto [rows, cols] : kShapes) {
        for (int k : {1, 10, 32, 128, 512, 1024, 2048}) {
            cells.push_back({rows, cols, k});
        }
        if (rows == 1024) {
            for (int k : {4096, 16384, 65536, 262144}) {
                cells.push_back({rows, cols, k});
            }
        }
        if (rows == 1) {
            cells.push_back({rows, cols, 1 << 24});
        }
    }
    for (int k : kFewKs) {
        cells.push_back({kSiftShape.first, kSiftShape.second, k});
    }
    return cells;
}

std::vector<SelectCell> publishedCells() {
    std::vector<SelectCell> cells = randomCells();
    for (Order order : allOrders()) {
        if (order == Order::Random || order > Order::Sift) {
            continue;
        }
        const std::vector<Shape> some = {kSiftShape, kShapes.back()};
        for (auto [rows, cols] : order == Order::Sift ? some : kShapes) {
            for (int k : kFewKs) {
                cells.push_back({rows, cols, k, DataType::Float32, order});
            }
        }
    }
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (auto [rows, cols] : {kShapes[1], kShapes[3], kShapes[5]}) {
            for (int k : kFewKs) {
                cells.push_back({rows, cols, k, type});
            }
        }
    }
    return cells;
}

std::vector<Shape> parseShapes(const std::string& list) {
    std::vector<Shape> shapes;
    for (const std::string& part : splitList(list)) {
        const auto sides = splitList(part, 'x');
        if (sides.size() != 2) {
            throw std::invalid_argument("'" + part + "' is not ROWSxCOLS");
        }
        shapes.push_back(
                {parseNumbers(sides[0])[0], parseNumbers(sides[1])[0]});
    }
    return shapes;
}

/// Keeps the cells whose field is in the list; an empty list keeps all.
template <class T, class Field>
void keepOnly(
        std::vector<SelectCell>& cells,
        const std::vector<T>& list,
        Field field) {
    if (!list.empty()) {
        std::erase_if(cells, [&](const SelectCell& cell) {
            return std::find(list.begin(), list.end(), field(cell)) ==
                    list.end();
        });
    }
}

template <class T>
std::vector<T> listOr(const std::vector<T>& list, T other) {
    return list.empty() ? std::vector<T>{other} : list;
}

} // namespace

std::string SelectCell::describe() const {
    char text[120];
    std::snprintf(
            text,
            sizeof(text),
            "%6lld x %-9lld k=%-8d %-8s %-10s",
            (long long)rows,
            (long long)cols,
            k,
            nameOf(type).c_str(),
            nameOf(order).c_str());
    return text;
}

std::vector<ExtraOption> SelectCellOptions::commandLine() {
    return {{"--shapes",
             "ROWSxCOLS, with commas; 2^20 is a number (default: published)",
             [this](const std::string& v) { shapes = parseShapes(v); }},
            {"--ks",
             "k, with commas (default: published)",
             [this](const std::string& v) { ks = parseNumbers(v); }},
            {"--orders",
             "of random,ascending,descending,equal,few,half_inf,nan,sift",
             [this](const std::string& v) {
                 for (const std::string& name : splitList(v)) {
                     orders.push_back(orderOf(name));
                 }
             }},
            {"--dtypes",
             "of float32,float16,bfloat16",
             [this](const std::string& v) {
                 for (const std::string& name : splitList(v)) {
                     types.push_back(dataTypeOf(name));
                 }
             }}};
}

std::vector<SelectCell> selectCells(const SelectCellOptions& options) {
    std::vector<SelectCell> cells;
    if (options.shapes.empty() || options.ks.empty()) {
        cells = publishedCells();
        keepOnly(cells, options.shapes, [](const SelectCell& c) {
            return Shape(c.rows, c.cols);
        });
        keepOnly(cells, options.ks, [](const SelectCell& c) {
            return int64_t(c.k);
        });
        keepOnly(cells, options.orders, [](const SelectCell& c) {
            return c.order;
        });
        keepOnly(cells, options.types, [](const SelectCell& c) {
            return c.type;
        });
        return cells;
    }
    for (DataType type : listOr(options.types, DataType::Float32)) {
        for (Order order : listOr(options.orders, Order::Random)) {
            for (auto [rows, cols] : options.shapes) {
                for (int64_t k : options.ks) {
                    // A row has no more than all of its keys to give.
                    if (k <= cols) {
                        cells.push_back({rows, cols, int(k), type, order});
                    }
                }
            }
        }
    }
    return cells;
}

} // namespace faiss_bits::bench
