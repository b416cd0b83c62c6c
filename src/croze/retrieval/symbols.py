"""How each language writes its definitions and references, as queries of tree-sitter.

A match captures `name` and, under the kind of definition, the whole of it; `declared` stands for a
declarator of C whose innermost part is the name.
"""

_JAVASCRIPT = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression left: (member_expression property: (_) @name)
  right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant)))
(program (lexical_declaration (variable_declarator name: (identifier) @name) @shouted))
"""
_JAVASCRIPT_FIELD = """
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @method
"""
_TYPESCRIPT = """
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @method
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(abstract_class_declaration name: (_) @name) @class
(function_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @method
(interface_body (method_signature name: (_) @name) @method)
"""

DEFINITIONS = {
    "python": """
(class_definition name: (_) @name) @class
(function_definition name: (_) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @shouted))
""",
    "javascript": _JAVASCRIPT + _JAVASCRIPT_FIELD,
    "typescript": _JAVASCRIPT + _TYPESCRIPT,
    "tsx": _JAVASCRIPT + _TYPESCRIPT,
    "go": """
(function_declaration name: (_) @name) @function
(method_declaration name: (_) @name) @method
(type_spec name: (_) @name type: (struct_type)) @struct
(type_spec name: (_) @name type: (interface_type)) @interface
(type_spec name: (_) @name) @type
(type_alias name: (_) @name) @type
(source_file (const_declaration (const_spec name: (_) @name) @constant))
(source_file (var_declaration (var_spec name: (_) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @variable)))
(method_elem name: (_) @name) @method
""",
    "rust": """
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(union_item name: (_) @name) @union
(trait_item name: (_) @name) @trait
(impl_item type: (_) @name) @impl
(mod_item name: (_) @name body: (_)) @module
(macro_definition name: (_) @name) @macro
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @constant
(type_item name: (_) @name) @type
""",
    "c": """
(function_definition declarator: (_) @declared) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @prototype
(declaration declarator: (pointer_declarator declarator:
  (function_declarator declarator: (identifier) @name))) @prototype
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @union
(enum_specifier name: (_) @name body: (_)) @enum
(type_definition declarator: (_) @declared) @type
(preproc_function_def name: (_) @name) @macro
(preproc_def name: (_) @name value: (_)) @macro
""",
    "java": """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @record
(annotation_type_declaration name: (_) @name) @annotation
(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @constructor
""",
    "bash": "(function_definition name: (_) @name) @function",
    "css": """
(rule_set (selectors) @name) @rule
(keyframes_statement (keyframes_name) @name) @keyframes
(media_statement) @media
""",
    "html": """
(element (start_tag (tag_name) @tag) (#match? @tag "^[hH][1-6]$")) @heading
(element (start_tag (attribute (attribute_name) @attribute
  (quoted_attribute_value (attribute_value) @name))) (#eq? @attribute "id")) @id
""",
    "json": """
(document (object (pair key: (string (string_content) @name)) @key))
(document (object (pair value: (object (pair key: (string (string_content) @name)) @key))))
""",
}

_JAVASCRIPT_USES = """
(call_expression function: (identifier) @name)
(call_expression function: (member_expression property: (property_identifier) @member))
(new_expression constructor: (identifier) @name)
(import_specifier name: (identifier) @name)
(import_clause (identifier) @name)
(member_expression property: (property_identifier) @name (#match? @name "^[A-Z]"))
"""
_JSX = """
(jsx_opening_element name: (identifier) @name)
(jsx_self_closing_element name: (identifier) @name)
"""
_TYPESCRIPT_USES = (
    _JAVASCRIPT_USES
    + """
(extends_clause value: (identifier) @name)
(type_identifier) @name
"""
)

REFERENCES = {
    "python": """
(call function: (identifier) @name)
(call function: (attribute attribute: (identifier) @member))
(attribute attribute: (identifier) @name (#match? @name "^[A-Z]"))
(import_from_statement name: (dotted_name (identifier) @name))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @name)))
(type (identifier) @name)
(type (generic_type (identifier) @name))
(type (binary_operator (identifier) @name))
(class_definition superclasses: (argument_list (identifier) @name))
(decorator (identifier) @name)
""",
    "javascript": _JAVASCRIPT_USES + _JSX + "(class_heritage (identifier) @name)",
    "typescript": _TYPESCRIPT_USES,
    "tsx": _TYPESCRIPT_USES + _JSX,
    "go": """
(call_expression function: (identifier) @name)
(selector_expression field: (field_identifier) @name (#match? @name "^[A-Z]"))
(call_expression function: (selector_expression field: (field_identifier) @member))
(type_identifier) @name
""",
    "rust": """
(call_expression function: (identifier) @name)
(call_expression function: (scoped_identifier name: (identifier) @name))
(call_expression function: (field_expression field: (field_identifier) @member))
(macro_invocation macro: (identifier) @name)
(use_declaration argument: (scoped_identifier name: (identifier) @name))
(use_list (identifier) @name)
(type_identifier) @name
((identifier) @name (#match? @name "^[A-Z]"))
""",
    "c": """
(call_expression function: (identifier) @name)
(type_identifier) @name
((identifier) @name (#match? @name "^[A-Z][A-Z0-9_]+$"))
""",
    "java": """
(method_invocation name: (identifier) @member)
(type_identifier) @name
((identifier) @name (#match? @name "^[A-Z]"))
""",
    "bash": "(command_name (word) @name)",
}
"""Where files use what may be defined elsewhere: calls, imports, types. A name alone says too little:
most are local. `member` is what is called on something else, like a method."""

IMPORTS = {
    "python": """
(import_from_statement module_name: (dotted_name . (identifier) @root)
  name: (dotted_name (identifier) @name))
(import_from_statement module_name: (dotted_name . (identifier) @root)
  name: (aliased_import name: (dotted_name (identifier) @name)))
""",
}
"""Where a name comes from that is imported: the first part of its module."""

KINDS = frozenset(
    {
        "annotation", "class", "constant", "constructor", "enum", "function", "heading", "id", "impl",
        "interface", "key", "keyframes", "macro", "media", "method", "module", "prototype", "record",
        "rule", "shouted", "struct", "trait", "type", "union", "variable",
    }
)  # fmt: skip
