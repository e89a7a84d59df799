"""Trees that find the subgroups in which a feature hardly depends on the other columns."""

from subgrove.trees.cart import CartTree
from subgrove.trees.conditional_inference import ConditionalInferenceTree
from subgrove.trees.joint import JointTree
from subgrove.trees.nodes import ColumnTest, Node, Split, Tests
from subgrove.trees.structure import Tree
from subgrove.trees.transformation import FittedTransformation, TransformationModel
from subgrove.trees.transformation_tree import TransformationTree

__all__ = [
    "CartTree",
    "ColumnTest",
    "ConditionalInferenceTree",
    "FittedTransformation",
    "JointTree",
    "Node",
    "Split",
    "Tests",
    "TransformationModel",
    "TransformationTree",
    "Tree",
]
