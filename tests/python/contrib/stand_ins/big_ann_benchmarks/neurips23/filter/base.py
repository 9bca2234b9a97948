from benchmark.algorithms.base import BaseANN


class BaseFilterANN(BaseANN):
    def filtered_query(self, X, filter, k):
        raise NotImplementedError

    def track(self):
        return "filter"
