#include "benchs/common/Keys.h"

#include <stdexcept>
#include <utility>

namespace faiss_bits::bench {

namespace {

const std::vector<std::pair<Order, const char*>> kOrderNames = {
        {Order::Random, "random"},
        {Order::Ascending, "ascending"},
        {Order::Descending, "descending"},
        {Order::Equal, "equal"},
        {Order::Few, "few"},
        {Order::HalfInf, "half_inf"},
        {Order::Nan, "nan"},
        {Order::Sift, "sift"},
        {Order::Clustered, "clustered"},
        {Order::RandomWalk, "random_walk"},
        {Order::SawTooth, "saw_tooth"},
        {Order::OrganPipe, "organ_pipe"},
        {Order::BestRun, "best_run"},
        {Order::Periodic, "periodic"},
        {Order::HeavyTail, "heavy_tail"},
        {Order::Exponents, "exponents"},
        {Order::MostlyInf, "mostly_inf"},
        {Order::SiftClustered, "sift_clustered"},
        {Order::AdversaryBest, "adversary_best"},
        {Order::AdversaryWorst, "adversary_worst"}};

const std::vector<std::pair<DataType, const char*>> kTypeNames = {
        {DataType::Float32, "float32"},
        {DataType::Float16, "float16"},
        {DataType::BFloat16, "bfloat16"}};

template <class T>
std::string nameIn(
        const std::vector<std::pair<T, const char*>>& names,
        T value) {
    for (const auto& [candidate, name] : names) {
        if (candidate == value) {
            return name;
        }
    }
    return "?";
}

template <class T>
T valueIn(
        const std::vector<std::pair<T, const char*>>& names,
        const std::string& wanted) {
    std::string all;
    for (const auto& [value, name] : names) {
        if (wanted == name) {
            return value;
        }
        all += std::string(all.empty() ? "" : ", ") + name;
    }
    throw std::invalid_argument("'" + wanted + "' is none of " + all);
}

} // namespace

const std::vector<Order>& allOrders() {
    static const std::vector<Order> orders = [] {
        std::vector<Order> list;
        for (const auto& [order, name] : kOrderNames) {
            list.push_back(order);
        }
        return list;
    }();
    return orders;
}

std::string nameOf(Order order) {
    return nameIn(kOrderNames, order);
}

std::string nameOf(DataType type) {
    return nameIn(kTypeNames, type);
}

Order orderOf(const std::string& name) {
    return valueIn(kOrderNames, name);
}

DataType dataTypeOf(const std::string& name) {
    return valueIn(kTypeNames, name);
}

} // namespace faiss_bits::bench
