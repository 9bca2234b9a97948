"""What an algorithm of big-ann-benchmarks offers to its runner."""


class BaseANN:
    def done(self):
        """Called at the end."""

    def track(self):
        raise NotImplementedError

    def fit(self, dataset):
        raise NotImplementedError

    def load_index(self, dataset):
        raise NotImplementedError

    def index_files_to_store(self, dataset):
        raise NotImplementedError

    def query(self, X, k):
        raise NotImplementedError

    def range_query(self, X, radius):
        raise NotImplementedError

    def get_results(self):
        return self.res

    def get_range_results(self):
        return self.res

    def get_additional(self):
        return {}

    def __str__(self):
        return self.name

    def get_memory_usage(self):
        return None
