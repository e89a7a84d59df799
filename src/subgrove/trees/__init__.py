"""Trees that find subgroups in which a feature hardly depends on the other columns."""

from subgrove.trees.cart import CartTree
from subgrove.trees.column_tests import ColumnTest, ColumnTests
from subgrove.trees.inference_trees import ConditionalInferenceTree, JointTree, TransformationTree
from subgrove.trees.nodes import Node, Split
from subgrove.trees.transformation import FittedTransformation, TransformationModel
from subgrove.trees.tree import Tree

__all__ = [
    "CartTree",
    "ColumnTest",
    "ColumnTests",
    "ConditionalInferenceTree",
    "FittedTransformation",
    "JointTree",
    "Node",
    "Split",
    "TransformationModel",
    "TransformationTree",
    "Tree",
]
