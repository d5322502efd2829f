"""explainers"""
